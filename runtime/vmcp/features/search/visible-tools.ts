/**
 * Reads the tools that a caller may use, as list pages that the guards have already filtered. Equal lists have equal
 * keys.
 *
 * Known pages are recognized by their buffer or hash, so a search does not parse a long list again.
 * Source: docs/reference/specification/virtual-server.md#endpoints, "Endpoints" (tools/list: hidden tools are omitted).
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { JsonObject } from '../../../mcp/index.ts'
import { innerOperation, type Operation, type Perform } from '../../model/operation.ts'

export interface VisibleTools {
  readonly key: string
  /** Raw results of tools/list. */
  readonly pages: readonly Buffer[]
}

interface PageFacts {
  readonly digest: string
  readonly nextCursor: string | undefined
}

const maxPages = 1_000
const maxKnown = 4_096

export class VisibleToolsReader {
  readonly #byBuffer = new WeakMap<Buffer, PageFacts>()
  readonly #byDigest = new LRUCache<string, PageFacts>({ max: maxKnown })

  /** Reads all pages. Rejects with the error from the list request. */
  async read(operation: Operation, inside: Perform): Promise<VisibleTools> {
    const pages: Buffer[] = []
    const digests: string[] = []
    let cursor: string | undefined
    do {
      const params = new JsonObject(Buffer.from(JSON.stringify({ cursor })))
      const outcome = await inside(innerOperation(operation, 'tools/list', params))
      if (outcome.kind !== 'result') break
      const { digest, nextCursor } = this.#factsOf(outcome.result)
      pages.push(outcome.result)
      digests.push(digest)
      cursor = nextCursor
    } while (cursor !== undefined && pages.length < maxPages)
    const [only = ''] = digests
    return { key: digests.length === 1 ? only : hash('sha256', digests.join(' '), 'base64url'), pages }
  }

  #factsOf(page: Buffer): PageFacts {
    const known = this.#byBuffer.get(page)
    if (known) return known
    const digest = hash('sha256', page, 'base64url')
    const facts = this.#byDigest.get(digest) ?? {
      digest,
      nextCursor: new JsonObject(page).text('nextCursor'),
    }
    this.#byBuffer.set(page, facts)
    this.#byDigest.set(digest, facts)
    return facts
  }
}
