/** The two cookies of a login: `__Host-`, so that no other host or path can set them; never readable by scripts. */
import type { Exchange } from '../../net/index.ts'

/** Lax: a strict cookie would not be sent on the redirect of the issuer, nor on a link from a chat. */
const attributes = 'Path=/; HttpOnly; SameSite=Lax'

export interface Cookie {
  readonly read: (exchange: Exchange) => string | undefined
  /** `maxAgeSec` undefined: until the browser ends. */
  readonly write: (exchange: Exchange, value: string, maxAgeSec?: number) => void
  readonly clear: (exchange: Exchange) => void
}

/** `secure` false: plain HTTP on this machine, where browsers refuse the prefix. */
export function cookie(name: string, { secure }: { readonly secure: boolean }): Cookie {
  const full = secure ? `__Host-${name}` : name
  const rest = secure ? `${attributes}; Secure` : attributes
  const set = ({ res }: Exchange, value: string): void => {
    res.appendHeader('Set-Cookie', value)
  }
  return {
    read({ req }) {
      const found = (req.headers.cookie ?? '')
        .split(';')
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(`${full}=`))
      // Two of one name: somebody else set one of them.
      return found.length === 1 ? found[0]?.slice(full.length + 1) : undefined
    },
    write: (exchange, value, maxAgeSec) =>
      set(exchange, `${full}=${value}; ${rest}${maxAgeSec === undefined ? '' : `; Max-Age=${maxAgeSec}`}`),
    clear: (exchange) => set(exchange, `${full}=; ${rest}; Max-Age=0`),
  }
}
