/**
 * What a person sees who opens the address of the server in a browser: what this is, and how to connect a client. For
 * browsers only; everything else gets the responses of MCP.
 */
import { type Exchange, html, page, sendBody, type Stage } from '../../net/index.ts'

export interface BrowserPageFacts {
  /** Name of the server. */
  readonly name: string
  /** Address of the MCP endpoint where it is known for certain; undefined: the path below. */
  readonly url: string | undefined
  readonly path: string
  /** True when clients have to sign in. */
  readonly auth: boolean
}

/** Browsers name HTML; clients of MCP name JSON or event streams. */
export function wantsPage({ req }: Exchange): boolean {
  const { accept = '' } = req.headers
  return (
    (req.method === 'GET' || req.method === 'HEAD') &&
    accept.includes('text/html') &&
    !accept.includes('text/event-stream')
  )
}

export function browserPage({ name, url, path, auth }: BrowserPageFacts): Stage<Exchange> {
  return ({ res }) => {
    const address = url ?? `the address of this page with the path ${path}`
    const { html: body, headers } = page(
      name,
      html`<h1>${name}</h1>
<p>This is an MCP server: programs such as coding assistants connect to it and use its tools. There is nothing to see here in a
browser.</p>
<dl>
<div><dt>Address for clients</dt><dd>${address}</dd></div>
<div><dt>Signing in</dt><dd>${auth ? 'required; the client opens a page for it' : 'not required'}</dd></div>
</dl>
<p>To connect, add the address to the configuration of the client, as a server of type http (streamable HTTP). A client that
only starts commands uses:</p>
<p><code>gatehouse proxy stdio ${url ?? 'ADDRESS'}${auth ? ' --remote-auth' : ''}</code></p>`,
    )
    sendBody(res, 200, 'text/html; charset=utf-8', body, {
      ...headers,
      'Cache-Control': 'no-store',
      'Referrer-Policy': 'no-referrer',
    })
  }
}
