/**
 * Assigns uncaught errors to tests. In `group.ts`, this module replaces `async-hook-domain`, the package that tap uses
 * for this purpose. The package observes every promise with async hooks, which takes a tenth of the CPU time of a file
 * with many promises. An `AsyncLocalStorage` costs almost nothing.
 */
import { AsyncLocalStorage, AsyncResource, executionAsyncResource } from 'node:async_hooks'

type OnError = (error: unknown, origin: string) => void

const current = new AsyncLocalStorage<Domain>()
/** Receives the errors outside all tests. */
let rootOnError: OnError | undefined

export class Domain {
  readonly onerror: OnError
  readonly parent = current.getStore()
  isDestroyed = false

  /** tap runs this constructor, and later the test, in the async resource of the test. */
  constructor(onerror: OnError) {
    this.onerror = onerror
    const resource = executionAsyncResource()
    if (resource instanceof AsyncResource) this.#enterIn(resource)
    else rootOnError ??= onerror
  }

  #enterIn(resource: AsyncResource): void {
    const runInAsyncScope = resource.runInAsyncScope.bind(resource)
    resource.runInAsyncScope = (work, self, ...args) =>
      runInAsyncScope(() => current.run(this, () => work.apply(self as never, args)))
  }

  destroy(): void {
    this.isDestroyed = true
  }
}

process.on('uncaughtExceptionMonitor', (error: unknown, origin: string) => {
  if (process.hasUncaughtExceptionCaptureCallback() || process.listenerCount('uncaughtException') > 0) return
  let domain = current.getStore()
  while (domain?.isDestroyed) domain = domain.parent
  const onError = domain?.onerror ?? rootOnError
  if (!onError) return
  // Keeps the process running after this error.
  process.setUncaughtExceptionCaptureCallback(() => process.setUncaughtExceptionCaptureCallback(null))
  onError(error, origin)
})
