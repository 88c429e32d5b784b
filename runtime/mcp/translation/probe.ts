/**
 * Asks a server over a link whether it speaks the stateless era, with one `server/discover`. Anything but a result that
 * names the revision, or silence, means that it does not.
 * Source: MCP 2026-07-28, stdio "Backward Compatibility".
 */
import { JsonObject } from '../json/object.ts'
import { metaKey, statelessVersion } from '../protocol.ts'
import type { LinkRequester } from './requester.ts'

/** A server that has not responded within this time does not know the method. */
const probeTimeoutMs = 10_000

/** What a server says of itself at most; it is read at once. */
export const maxIntroductionBytes: number = 1024 * 1024

/** The raw DiscoverResult; undefined when the server does not speak the era. Rejects when the link is over. */
export async function discover(
  requester: LinkRequester,
  clientInfo: string,
  timeoutMs = probeTimeoutMs,
): Promise<Buffer | undefined> {
  const silence = new AbortController()
  const timer = setTimeout(() => silence.abort(new Error('no response')), timeoutMs)
  timer.unref()
  const meta = `{"${metaKey.protocolVersion}":"${statelessVersion}","${metaKey.clientInfo}":${clientInfo},"${metaKey.clientCapabilities}":{}}`
  try {
    const { result } = await requester.request(
      requester.newId(),
      'server/discover',
      `{"_meta":${meta}}`,
      silence.signal,
    )
    return result && namesStateless(result) ? result : undefined
  } catch (error) {
    if (silence.signal.aborted) return undefined
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** True for a DiscoverResult with the stateless revision in it. */
function namesStateless(result: Buffer): boolean {
  if (result.length > maxIntroductionBytes) return false
  try {
    const versions = new JsonObject(result).value('supportedVersions')
    return Array.isArray(versions) && versions.includes(statelessVersion)
  } catch {
    return false
  }
}
