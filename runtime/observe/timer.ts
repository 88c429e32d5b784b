/** Runs `work` once after `ms`, and does not keep the process alive for it; the returned function cancels it. */
export function unheldTimer(ms: number, work: () => void): () => void {
  const handle = setTimeout(work, ms)
  handle.unref()
  return () => clearTimeout(handle)
}
