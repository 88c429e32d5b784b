/**
 * The pages that the browser shows at the end of a login, in the style of all Gatehouse pages.
 *
 * All text is fixed: the pages never repeat input from the URL or the authorization server. The pages contain no
 * scripts or frames, and are not cached.
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
    ...simple('The login failed', 'See your terminal for the reason. You can close this window.'),
  },
  foreign: {
    status: 400,
    ...simple('This link is not valid', 'No login is in progress for this link.'),
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
