/** The route is stored in the address fragment: `#/tools/<name>/try?text=x`. */
import { signal } from '@preact/signals'

export interface Route {
  readonly page: string
  readonly rest: readonly string[]
  readonly query: URLSearchParams
}

export const route = signal<Route>(parse(location.hash.startsWith('#launch=') ? '' : location.hash))

window.addEventListener('hashchange', () => {
  route.value = parse(location.hash)
})

function parse(hash: string): Route {
  const [path, query] = splitOnce(hash.replace(/^#\/?/, ''), '?')
  const [page = '', ...rest] = path.split('/').map(decoded)
  return {
    page: page || 'overview',
    rest: rest.filter((part) => part !== ''),
    query: new URLSearchParams(query),
  }
}

function splitOnce(text: string, by: string): readonly [string, string] {
  const at = text.indexOf(by)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Returns the address of a page, without empty query members. */
export function hrefOf(
  path: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const filled = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1])
  const tail = filled.length === 0 ? '' : `?${new URLSearchParams(filled)}`
  return `#/${path.map(pathPart).join('/')}${tail}`
}

/** Changes the route's query without changing the page, the focus or the history. */
export function setQuery(change: Readonly<Record<string, string | undefined>>): void {
  const { page, rest, query } = route.peek()
  const next = { ...Object.fromEntries(query), ...change }
  history.replaceState(null, '', hrefOf([page, ...rest], next))
  route.value = parse(location.hash)
}

/** Encodes one path segment. A name from a server may contain an unpaired surrogate, which cannot be encoded. */
export function pathPart(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}
