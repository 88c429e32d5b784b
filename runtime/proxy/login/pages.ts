/**
 * What the browser shows at the end of a login. Fixed texts: nothing that came in the URL or from the authorization
 * server is repeated. No scripts, no styles, no frames, nothing cached.
 */
import type { ServerResponse } from 'node:http'
import { sendBody } from '../../net/index.ts'

const headers = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
}

function page(title: string, text: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head><body><h1>${title}</h1><p>${text}</p></body></html>\n`
}

const pages = {
  done: {
    status: 200,
    body: page('You are signed in', 'You can close this window and return to your terminal.'),
  },
  failed: {
    status: 400,
    body: page('The login failed', 'Your terminal says why. You can close this window.'),
  },
  foreign: {
    status: 400,
    body: page('This link is not valid', 'It does not belong to a login that is waiting here.'),
  },
  waiting: { status: 200, body: page('Waiting for a login', 'Follow the link in your terminal to sign in.') },
} as const

export function showPage(res: ServerResponse, name: keyof typeof pages): void {
  const { status, body } = pages[name]
  sendBody(res, status, 'text/html; charset=utf-8', body, headers)
}
