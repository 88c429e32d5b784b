/**
 * Serves a small read-only document over HTTP: GET, HEAD and CORS preflight requests, with an entity tag and a lifetime.
 *
 * Any other method gets 405. A client that sends the current entity tag gets 304 without a body.
 * Source: RFC 9110 sections 8.8.3 and 13.1.2; RFC 9111 section 5.2.2; Fetch, "CORS protocol".
 */
import { hash } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Exchange } from '../pipeline.ts'
import { sendBody } from '../problem.ts'

interface ServedDocument {
  readonly contentType: string
  readonly body: string
  readonly maxAgeSeconds: number
  /** True if every client and every web page may read the document. Otherwise, shared caches must not store it. */
  readonly isPublic: boolean
}

const corsHeaders = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET',
  'Access-Control-Allow-Headers': 'Content-Type, If-None-Match',
  'Access-Control-Expose-Headers': 'ETag',
} as const

/** Sends the document. Throws METHOD_NOT_ALLOWED. */
export function sendDocument({ req, res }: Exchange, document: ServedDocument): void {
  const { contentType, body, maxAgeSeconds, isPublic } = document
  const cors = isPublic ? corsHeaders : {}
  if (isPublic && req.method === 'OPTIONS') {
    res.writeHead(204, { ...cors, 'Access-Control-Max-Age': '7200' }).end()
    return
  }
  if (req.method !== 'GET' && req.method !== 'HEAD')
    throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } })
  const etag = `"${hash('sha256', body, 'base64url')}"`
  const headers = {
    ...cors,
    'Cache-Control': `${isPublic ? 'public' : 'private'}, max-age=${maxAgeSeconds}`,
    ETag: etag,
    ...(isPublic ? {} : { Vary: 'Authorization' }),
  }
  if (matches(req.headers['if-none-match'], etag)) res.writeHead(304, headers).end()
  else sendBody(res, 200, contentType, body, headers)
}

/** Compares entity tags weakly, as RFC 9110 requires for If-None-Match. */
function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((item) => ['*', etag].includes(item.trim().replace(/^W\//, '')))
}
