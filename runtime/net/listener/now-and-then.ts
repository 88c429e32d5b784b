/** Something that an untrusted client can cause as often as it likes is told once a minute at most. */
const tellMs = 60_000

export function nowAndThen<Args extends unknown[]>(tell: (...args: Args) => void): (...args: Args) => void {
  let toldAt = Number.NEGATIVE_INFINITY

  return function tellRarely(...args) {
    const now = performance.now()
    if (now - toldAt < tellMs) return
    toldAt = now
    tell(...args)
  }
}
