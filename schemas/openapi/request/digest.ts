/** Digests of requests, for tool locks. */
import { hashOf } from '../../canonical.ts'
import type { RequestPlan } from '../model.ts'

/** Member of a tool's `_meta` that contains the digest. */
export const requestDigestKey = 'gatehouse.dev/request'

/**
 * Returns a digest of the method, the path and the locations of the arguments. Without this digest, a changed document
 * could send a locked tool's calls to another operation, because the definition of a tool does not contain its request.
 *
 * The digest excludes fixed values and the handling of responses, which come from the configuration. Adding a member
 * to the hashed object invalidates all locks of REST tools.
 */
export function requestDigest({ method, path, inputs, body }: RequestPlan): string {
  return `sha256:${hashOf({
    method,
    path: path.map((part) => ('text' in part ? part.text : `{${part.parameter}}`)).join(''),
    inputs: inputs.map(({ argument, in: location, name, style, explode, allowReserved }) => ({
      ...{ argument, in: location, name, style, explode, allowReserved },
    })),
    body: body && { mediaType: body.mediaType, encoding: body.encoding },
  })}`
}
