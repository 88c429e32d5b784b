/**
 * Records which backend returned which resource URIs. A client can then read a resource that no list contains, such as
 * a `resource_link` or an embedded resource in a result.
 *
 * The owner of a link is the client's session, or the caller if the client has no session. The number of links is
 * bounded in total, and for each owner and backend, so one backend cannot evict another backend's links. No records are
 * required if the configuration has a single backend.
 */
import type { ResultPassage } from '../../mcp/index.ts'
import { isShared } from '../model/client.ts'
import type { Operation } from '../model/operation.ts'
import type { OperationClient } from '../model/session.ts'
import type { Outcome } from '../model/outcome.ts'

const maxLinks = 1_000
/** Maximum size, in units of `sizeOf`, of one backend's links for one owner, and of all links together. */
const maxSize = 256 * 1024
const maxTotalSize = 16 * 1024 * 1024
const maxUriBytes = 4 * 1024
const maxLinksPerResult = 1_000

/** Methods whose results may contain links. */
const linkMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/**
 * Links by backend. The key is undefined if callers that cannot be distinguished received the URI from different
 * backends.
 */
type OwnedLinks = Map<string | undefined, LinkSet>

export class ResourceLinks {
  /** Owners in order of last use, most recent last. */
  readonly #owners = new Map<string, OwnedLinks>()
  #size = 0

  /** Returns the backend that returned a URI to the client. */
  backendOf(client: OperationClient, uri: string): string | undefined {
    const owner = ownerOf(client)
    const owned = this.#owners.get(owner)
    const [backend, links] = (owned && linksWith(owned, uri)) ?? []
    if (!owned || !links) return undefined
    links.add(uri)
    this.#owners.delete(owner)
    this.#owners.set(owner, owned)
    return backend
  }

  /** Records the links in a result. */
  remember({ client, method, params }: Operation, backend: string, outcome: Outcome): void {
    if (outcome.kind !== 'result' || !linkMethods.has(method)) return
    const scanner = new LinkScanner(params.text('uri'))
    scanner.push(outcome.result)
    for (const uri of scanner.take()) this.#add(client, backend, uri)
  }

  /** Returns a result stream that records the links in the result and forwards the result to `passage`. */
  recordWhileStreaming(
    passage: ResultPassage | undefined,
    { client, method, params }: Operation,
    backend: string,
  ): ResultPassage | undefined {
    if (!passage || !linkMethods.has(method)) return passage
    const scanner = new LinkScanner(params.text('uri'))
    return {
      era: passage.era,
      begin: () => passage.begin(),
      write: (parts) => {
        for (const part of parts) scanner.push(part)
        for (const uri of scanner.take()) this.#add(client, backend, uri)
        return passage.write(parts)
      },
    }
  }

  #add(client: OperationClient, backend: string, uri: string): void {
    // A result may arrive after its session has ended.
    if (client.session?.isOver) return
    const owner = ownerOf(client)
    const owned: OwnedLinks = this.#owners.get(owner) ?? new Map<string | undefined, LinkSet>()
    this.#owners.delete(owner)
    this.#owners.set(owner, owned)
    const known = linksWith(owned, uri)
    // An anonymous caller must not be able to redirect other callers to another backend.
    const isAmbiguous =
      known !== undefined && isShared(client.caller) && !client.session && known[0] !== backend
    const provider = isAmbiguous ? undefined : backend
    if (known) this.#resize(known[1], (links) => links.delete(uri))
    const links = owned.get(provider) ?? new LinkSet()
    owned.set(provider, links)
    this.#resize(links, () => links.add(uri))
    while (this.#size > maxTotalSize) this.#forget(this.#owners.keys().next().value ?? '')
  }

  #resize(links: LinkSet, change: (links: LinkSet) => void): void {
    this.#size -= links.size
    change(links)
    this.#size += links.size
  }

  endSession(sessionId: string): void {
    this.#forget(`session ${sessionId}`)
  }

  #forget(owner: string): void {
    for (const links of this.#owners.get(owner)?.values() ?? []) this.#size -= links.size
    this.#owners.delete(owner)
  }

  /** Drops the links of backends that have been removed or replaced. */
  forgetBackends(backends: readonly string[]): void {
    for (const owned of this.#owners.values())
      for (const backend of backends) {
        this.#size -= owned.get(backend)?.size ?? 0
        owned.delete(backend)
      }
  }
}

/** URIs that one backend returned to one owner. The least recently used URIs are evicted. */
class LinkSet {
  /** URIs in order of last use, most recent last. */
  readonly #uris = new Set<string>()
  #size = 0

  get size(): number {
    return this.#size
  }

  has(uri: string): boolean {
    return this.#uris.has(uri)
  }

  add(uri: string): void {
    this.delete(uri)
    this.#uris.add(uri)
    this.#size += sizeOf(uri)
    for (const oldest of this.#uris) {
      if (this.#size <= maxSize && this.#uris.size <= maxLinks) return
      this.delete(oldest)
    }
  }

  delete(uri: string): void {
    if (this.#uris.delete(uri)) this.#size -= sizeOf(uri)
  }
}

/** Returns the approximate memory size of a link, including a fixed overhead. */
function sizeOf(uri: string): number {
  return uri.length + 100
}

function linksWith(owned: OwnedLinks, uri: string): [string | undefined, LinkSet] | undefined {
  for (const entry of owned) if (entry[1].has(uri)) return entry
  return undefined
}

function ownerOf({ era, session, caller }: OperationClient): string {
  return era === 'session' && session ? `session ${session.id}` : `caller ${caller.key}`
}

const uriMember = Buffer.from('"uri"')

/** Finds the string values of all `uri` members in JSON that arrives in chunks. */
class LinkScanner {
  /** The URI that the client requested, which does not count as a link. */
  readonly #requestedUri: string | undefined
  readonly #found = new Set<string>()
  #count = 0
  /** The last part of the previous chunk, in which a member may have begun. */
  #rest: Buffer = Buffer.alloc(0)

  constructor(requestedUri: string | undefined) {
    this.#requestedUri = requestedUri
  }

  /** Returns the URIs found since the previous call. */
  take(): readonly string[] {
    const found = [...this.#found]
    this.#found.clear()
    return found
  }

  push(piece: Buffer): void {
    if (this.#count >= maxLinksPerResult) return
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, piece]) : piece
    let from = 0
    for (;;) {
      const at = bytes.indexOf(uriMember, from)
      if (at < 0) break
      const value = textAt(bytes, at + uriMember.length)
      if (value === 'unfinished') {
        this.#rest = Buffer.from(bytes.subarray(at))
        return
      }
      if (value && value.uri !== this.#requestedUri) this.#found.add(value.uri)
      if (++this.#count >= maxLinksPerResult) return
      from = at + uriMember.length
    }
    this.#rest = Buffer.from(bytes.subarray(Math.max(from, bytes.length - uriMember.length + 1)))
  }
}

/** Returns the JSON string after a colon. Returns undefined if no string follows, or if the string is too long. */
function textAt(bytes: Buffer, from: number): { readonly uri: string } | 'unfinished' | undefined {
  const window = bytes.toString('latin1', from, from + maxUriBytes)
  const found = /^\s*:\s*("(?:[^"\\]|\\.)*")/su.exec(window)
  if (!found?.[1]) {
    const isOpen = /^\s*(?::\s*(?:"(?:[^"\\]|\\.)*\\?)?)?$/su.test(window)
    return isOpen && window.length < maxUriBytes ? 'unfinished' : undefined
  }
  const text = Buffer.from(found[1], 'latin1').toString()
  try {
    return { uri: String(JSON.parse(text)) }
  } catch {
    return undefined
  }
}
