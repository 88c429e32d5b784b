/** CPU time of the calling thread in microseconds. */
export function cpuUsage(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}
