/** A simulated browser: it handles cookies, redirects and forms, but renders no page. */

export interface Shown {
  readonly url: URL
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** A user's browser with cookies per origin. It follows redirects up to a URL that begins with `stopAt`. */
export class Browser {
  readonly #jars = new Map<string, Map<string, string>>()
  /** Every visited URL, in order. */
  readonly visited: string[] = []

  cookies(url: string | URL): ReadonlyMap<string, string> {
    return this.#jar(new URL(url))
  }

  setCookie(url: string | URL, name: string, value: string): void {
    this.#jar(new URL(url)).set(name, value)
  }

  /** Sends one request without following redirects. */
  async request(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const target = new URL(url)
    const jar = this.#jar(target)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = new Headers(init.headers)
    if (cookie !== '') headers.set('cookie', cookie)
    if (!headers.has('accept')) headers.set('accept', 'text/html,*/*')
    this.visited.push(target.href)
    const response = await fetch(target, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';', 1)
      const name = pair.slice(0, pair.indexOf('='))
      if (/max-age=0|expires=Thu, 01 Jan 1970/i.test(line)) jar.delete(name)
      else jar.set(name, pair.slice(pair.indexOf('=') + 1))
    }
    return response
  }

  /** Follows redirects until a page is shown or a URL begins with `stopAt`. Does not request that URL. */
  async open(url: string | URL, stopAt?: string, init: RequestInit = {}): Promise<Shown> {
    let target = new URL(url)
    let request = init
    for (let hop = 0; hop < 30; hop++) {
      if (stopAt !== undefined && target.href.startsWith(stopAt)) {
        return { url: target, status: 0, headers: new Headers(), text: '' }
      }
      const response = await this.request(target, request)
      const text = await response.text()
      const location = response.headers.get('location')
      if (location === null || response.status < 300 || response.status > 399) {
        return { url: target, status: response.status, headers: response.headers, text }
      }
      target = new URL(location, target)
      request = {}
    }
    throw new Error('too many redirects')
  }

  /** Presses a button of the form on a page. Sends the ticked boxes that `untick` does not list. */
  async press(page: Shown, action: string, stopAt?: string, untick: readonly string[] = []): Promise<Shown> {
    const fields = new URLSearchParams()
    for (const [tag] of page.text.matchAll(/<input[^>]*>/g)) {
      const of = (name: string): string | undefined => new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1]
      const box = of('type') === 'checkbox'
      const name = of('name')
      const value = unescapeHtml(of('value') ?? '')
      if (name !== undefined && (!box || (/ checked/.test(tag) && !untick.includes(value))))
        fields.append(name, value)
    }
    fields.append('action', action)
    const target = unescapeHtml(/<form[^>]* action="([^"]*)"/.exec(page.text)?.[1] ?? page.url.href)
    return this.open(new URL(target, page.url), stopAt, {
      method: 'POST',
      body: fields,
      headers: { origin: page.url.origin, 'sec-fetch-site': 'same-origin' },
    })
  }

  /** Sends a page's form with changed hidden fields, and follows redirects. */
  send(page: Shown, fields: Readonly<Record<string, string>>, stopAt?: string): Promise<Shown> {
    return this.open(new URL(page.url.pathname, page.url), stopAt, submission(page, fields))
  }

  #jar(url: URL): Map<string, string> {
    const known = this.#jars.get(url.origin)
    if (known) return known
    const jar = new Map<string, string>()
    this.#jars.set(url.origin, jar)
    return jar
  }
}

/** Posts a form of a page: the first of the hidden fields `form`, `client` and `request`, and `fields`. */
export function submission(
  page: Shown,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {
    origin: page.url.origin,
    'sec-fetch-site': 'same-origin',
  },
): RequestInit {
  const body = new URLSearchParams()
  for (const [, name = '', value = ''] of page.text.matchAll(
    /type="hidden" name="(form|client|request)" value="([^"]*)"/g,
  ))
    if (!body.has(name)) body.set(name, unescapeHtml(value))
  for (const [name, value] of Object.entries(fields)) body.set(name, value)
  return { method: 'POST', body, headers }
}

function unescapeHtml(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_all, name: string) => {
    const chars: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
    return chars[name] ?? ''
  })
}
