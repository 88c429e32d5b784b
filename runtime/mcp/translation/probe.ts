/**
 * Sends one `server/discover` to check whether a server supports the stateless era. The server supports the era only if
 * the result contains the revision. A timeout or any other response means that the server does not support the era.
 * Source: MCP 2026-07-28, stdio "Backward Compatibility".
 */
import { declaresStateless, requestMeta } from '../eras/introduction.ts'
import type { LinkRequester } from './requester.ts'

/** Time in milliseconds after which a server that has not responded is assumed not to support the method. */
const probeTimeoutMs = 10_000

/**
 * Returns the raw DiscoverResult. Returns undefined if the server does not support the era. Rejects if the link has
 * ended.
 */
export async function discover(
  requester: LinkRequester,
  clientInfo: string,
  timeoutMs = probeTimeoutMs,
): Promise<Buffer | undefined> {
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(new Error('no response')), timeoutMs)
  timer.unref()
  try {
    const { result } = await requester.request(
      requester.newId(),
      'server/discover',
      `{"_meta":${requestMeta(clientInfo)}}`,
      timeout.signal,
    )
    return result && declaresStateless(result) ? result : undefined
  } catch (error) {
    if (timeout.signal.aborted) return undefined
    throw error
  } finally {
    clearTimeout(timer)
  }
}
