/** Tells when a server begins to refuse requests, and when it has refused none for a while; not each refusal. */
export interface Overload {
  /** False: it is over. */
  readonly isOn: boolean
  /** Requests refused since it began. */
  readonly refused: number
}

/** Runs the work once after `ms`, without keeping the process alive. */
type After = (ms: number, work: () => void) => unknown

/** Over when nothing was refused for so long. */
const quietMs = 5_000

/** The result is called for each refusal. */
export function overloadSpells(tell: (overload: Overload) => void, after: After = unheld): () => void {
  let refused = 0
  let seen = 0

  function look(): void {
    if (refused > seen) {
      seen = refused
      after(quietMs, look)
      return
    }
    tell({ isOn: false, refused })
    refused = 0
    seen = 0
  }

  return function noteRefusal() {
    if (++refused > 1) return
    tell({ isOn: true, refused })
    after(quietMs, look)
  }
}

function unheld(ms: number, work: () => void): void {
  setTimeout(work, ms).unref()
}
