/** Reads OpenAPI documents from files and from URLs with a digest. */
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import type { AddressPolicy, OpenApiDocumentSource } from '../../../../schemas/index.ts'
import { FetchRefusedError, knownFailure, makeFetch, networkFailureText } from '../../../net/index.ts'
import { DocumentRejected } from './convert.ts'

/** Maximum size of a document. The conversion has the same limit. */
const maxBytes = 5 * 1024 * 1024
const fetchMs = 30_000

/** Returns the text of a document. Rejects with DocumentRejected, or with the signal's reason. */
export async function readDocument(
  source: OpenApiDocumentSource,
  addresses: AddressPolicy,
  signal: AbortSignal,
): Promise<string> {
  if (source.path !== undefined) return readFromFile(source.path)
  const body = await download(source.url ?? '', addresses, signal)
  const digest = createHash('sha256').update(body).digest('hex')
  if (digest !== source.sha256)
    throw new DocumentRejected(
      `the digest of the document at the URL is ${digest}, but sha256 is ${source.sha256 ?? ''}; review the document, then update sha256`,
    )
  return body.toString()
}

async function readFromFile(path: string): Promise<string> {
  try {
    await using file = await open(path)
    const { size } = await file.stat()
    if (size > maxBytes) throw tooLarge()
    const buffer = Buffer.alloc(maxBytes + 1)
    let length = 0
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length)
      length += bytesRead
      if (bytesRead === 0) return buffer.toString('utf8', 0, length)
      if (length > maxBytes) throw tooLarge()
    }
  } catch (cause) {
    if (cause instanceof DocumentRejected) throw cause
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error'
    throw new DocumentRejected(`the file ${path} cannot be read (${code})`, { cause })
  }
}

function tooLarge(): DocumentRejected {
  return new DocumentRejected(`the document is larger than ${maxBytes / 1024 / 1024} MiB`)
}

/** Sends no credentials and follows no redirects. The address policy of the backend applies. */
async function download(url: string, guard: AddressPolicy, signal: AbortSignal): Promise<Buffer> {
  const fetch = makeFetch({
    guard,
    operatorUrls: 'all',
    allowHttp: true,
    maxRedirects: 0,
    timeoutMs: fetchMs,
    maxBytes,
    keepAlive: false,
  })
  try {
    const response = await fetch(url, { signal })
    if (response.status !== 200)
      throw new DocumentRejected(`the document URL returned HTTP ${response.status}`)
    return Buffer.from(await response.arrayBuffer())
  } catch (cause) {
    if (cause instanceof DocumentRejected || signal.aborted) throw cause
    if (cause instanceof FetchRefusedError && cause.code === 'ANSWER_TOO_LARGE') throw tooLarge()
    const failure = knownFailure(cause)
    const reason = failure ? networkFailureText(failure) : 'the connection failed'
    throw new DocumentRejected(`the document URL cannot be read: ${reason}`, { cause })
  } finally {
    await fetch.close()
  }
}
