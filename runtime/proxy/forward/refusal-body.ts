/** Decodes a rejection's body from any content coding that the client accepts. The decoded size is bounded. */
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import { maxRefusalBytes } from '../../mcp/index.ts'

const limit = { maxOutputLength: maxRefusalBytes }

/** Returns an empty buffer if the coding is unknown, the body is damaged, or the decoded body is too large. */
export function decodeRefusal(body: Buffer, coding: string | undefined): Buffer {
  try {
    switch (coding?.trim().toLowerCase() ?? '') {
      case '':
      case 'identity':
        return body
      case 'gzip':
      case 'x-gzip':
        return gunzipSync(body, limit)
      case 'deflate':
        return inflateSync(body, limit)
      case 'br':
        return brotliDecompressSync(body, limit)
      default:
        return Buffer.alloc(0)
    }
  } catch {
    return Buffer.alloc(0)
  }
}
