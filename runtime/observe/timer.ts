/** Runs `work` once after `ms` without keeping the process alive. Returns a function that cancels it. */
export function unheldTimer(ms: number, work: () => void): () => void {
  const handle = setTimeout(work, ms)
  handle.unref()
  return () => clearTimeout(handle)
}
