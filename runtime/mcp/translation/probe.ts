/**
 * Asks a server over a link whether it speaks the stateless era, with one `server/discover`. Anything but a result that
 * names the revision, or silence, means that it does not.
 * Source: MCP 2026-07-28, stdio "Backward Compatibility".
 */
import { declaresStateless, requestMeta } from '../eras/introduction.ts'
import type { LinkRequester } from './requester.ts'

/** A server that has not responded within this time does not know the method. */
const probeTimeoutMs = 10_000

/** The raw DiscoverResult; undefined when the server does not speak the era. Rejects when the link is over. */
export async function discover(
  requester: LinkRequester,
  clientInfo: string,
  timeoutMs = probeTimeoutMs,
): Promise<Buffer | undefined> {
  const silence = new AbortController()
  const timer = setTimeout(() => silence.abort(new Error('no response')), timeoutMs)
  timer.unref()
  try {
    const { result } = await requester.request(
      requester.newId(),
      'server/discover',
      `{"_meta":${requestMeta(clientInfo)}}`,
      silence.signal,
    )
    return result && declaresStateless(result) ? result : undefined
  } catch (error) {
    if (silence.signal.aborted) return undefined
    throw error
  } finally {
    clearTimeout(timer)
  }
}
