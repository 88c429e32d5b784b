/**
 * What the browser shows at the end of a login, in the look of all of Gatehouse's pages. Fixed texts: nothing that came
 * in the URL or from the authorization server is repeated. No scripts, no frames, nothing cached.
 */
import type { ServerResponse } from 'node:http'
import { html, page, sendBody } from '../../net/index.ts'

const pages = {
  done: {
    status: 200,
    ...simple('You are signed in', 'You can close this window and return to your terminal.'),
  },
  failed: {
    status: 400,
    ...simple('The login failed', 'Your terminal says why. You can close this window.'),
  },
  foreign: {
    status: 400,
    ...simple('This link is not valid', 'It does not belong to a login that is waiting here.'),
  },
  waiting: { status: 200, ...simple('Waiting for a login', 'Follow the link in your terminal to sign in.') },
} as const

function simple(title: string, text: string): ReturnType<typeof page> {
  return page(title, html`<h1>${title}</h1>\n<p>${text}</p>`)
}

export function showPage(res: ServerResponse, name: keyof typeof pages): void {
  const { status, html: body, headers } = pages[name]
  sendBody(res, status, 'text/html; charset=utf-8', body, {
    ...headers,
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Frame-Options': 'DENY',
  })
}
