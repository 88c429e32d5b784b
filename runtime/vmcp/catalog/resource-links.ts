/**
 * Remembers which backend handed out which resource URIs, so that a client can read a resource that no list contains: a
 * `resource_link` or an embedded resource of a result.
 *
 * The owner of a link is the client's session, or the caller where clients have no session. Bounded for each owner and
 * overall; the links not used for longest make room. With one backend nothing needs to be remembered.
 */
import type { ResultPassage } from '../../mcp/index.ts'
import { isShared } from '../client-codecs/client.ts'
import type { Operation, OperationClient, Outcome } from '../pipeline/operation.ts'

const maxLinksPerOwner = 1_000
/** Length of all URIs together. */
const maxTotalLength = 16 * 1024 * 1024
const maxUriBytes = 4 * 1024
const maxLinksPerResult = 1_000

/** Methods whose results may have links. */
const linkMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

export class ResourceLinks {
  /** Backend by URI by owner; undefined: callers that cannot be told apart got the URI from different backends. */
  readonly #owners = new Map<string, Map<string, string | undefined>>()
  #length = 0

  /** The backend that handed out a URI to a client. */
  backendOf(client: OperationClient, uri: string): string | undefined {
    const owner = ownerOf(client)
    const links = this.#owners.get(owner)
    if (!links?.has(uri)) return undefined
    const backend = links.get(uri)
    links.delete(uri)
    links.set(uri, backend)
    this.#owners.delete(owner)
    this.#owners.set(owner, links)
    return backend
  }

  /** Remembers the links of a result. */
  remember({ client, method, params }: Operation, backend: string, outcome: Outcome): void {
    if (outcome.kind !== 'result' || !linkMethods.has(method)) return
    const scanner = new LinkScanner(params.text('uri'))
    scanner.push(outcome.result)
    for (const uri of scanner.take()) this.#add(client, backend, uri)
  }

  /** A passage that remembers the links of a result while the result passes. */
  watched(
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
    const owner = ownerOf(client)
    const links = this.#owners.get(owner) ?? new Map<string, string | undefined>()
    this.#owners.delete(owner)
    this.#owners.set(owner, links)
    // One anonymous caller must not be able to lead the others to another backend.
    const isAmbiguous =
      isShared(client.caller) && !client.session && links.has(uri) && links.get(uri) !== backend
    this.#drop(links, uri)
    links.set(uri, isAmbiguous ? undefined : backend)
    this.#length += uri.length
    if (links.size > maxLinksPerOwner) this.#drop(links, links.keys().next().value)
    while (this.#length > maxTotalLength) this.#forget(this.#owners.keys().next().value ?? '')
  }

  #drop(links: Map<string, string | undefined>, uri: string | undefined): void {
    if (uri !== undefined && links.delete(uri)) this.#length -= uri.length
  }

  endSession(sessionId: string): void {
    this.#forget(`session ${sessionId}`)
  }

  #forget(owner: string): void {
    const links = this.#owners.get(owner)
    if (!links) return
    for (const uri of links.keys()) this.#length -= uri.length
    this.#owners.delete(owner)
  }

  /** Drops the links of backends that were removed or replaced. */
  forgetBackends(backends: readonly string[]): void {
    if (backends.length === 0) return
    for (const links of this.#owners.values())
      for (const [uri, backend] of links)
        if (backend !== undefined && backends.includes(backend)) this.#drop(links, uri)
  }
}

function ownerOf({ era, session, caller }: OperationClient): string {
  return era === 'session' && session ? `session ${session.id}` : `caller ${caller.key}`
}

const uriMember = Buffer.from('"uri"')

/** Finds the texts of all members named `uri` in JSON that arrives in pieces. */
class LinkScanner {
  /** The URI that was asked for, which is no link. */
  readonly #own: string | undefined
  readonly #found = new Set<string>()
  #count = 0
  /** The end of the last piece, where a member may have begun. */
  #rest: Buffer = Buffer.alloc(0)

  constructor(own: string | undefined) {
    this.#own = own
  }

  /** What was found since the last call. */
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
      if (value && value.uri !== this.#own) this.#found.add(value.uri)
      if (++this.#count >= maxLinksPerResult) return
      from = at + uriMember.length
    }
    this.#rest = Buffer.from(bytes.subarray(Math.max(from, bytes.length - uriMember.length + 1)))
  }
}

/** The JSON text after a colon; undefined when there is none, or one that is too long. */
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
