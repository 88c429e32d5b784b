/**
 * Pages of MCP Apps that users open after trying a tool. The server reads a page as the visitor, with policies, locks
 * and audit, and serves it once, under an address that cannot be guessed, for a frame of the console.
 *
 * A page is hostile. Its response has an opaque origin, even if it is opened outside a frame, so it reaches neither the
 * console's cookies nor its API.
 * Source: MCP Apps, "Security"; Content Security Policy Level 3, "sandbox".
 */
import { randomBytes } from 'node:crypto'
import { GatehouseError, isFields } from '../../../schemas/index.ts'
import { JsonError, JsonObject, scanElements } from '../../mcp/index.ts'
import { type Exchange, sendBody } from '../../net/index.ts'
import { redactText } from '../../observe/index.ts'
import type { ApiRequest } from '../http/api-route.ts'
import { appPolicy } from '../http/app-policy.ts'
import type { ConsoleView } from '../view.ts'

const pageType = 'text/html;profile=mcp-app'
const maxPageBytes = 4 * 1024 * 1024
/** Maximum number of pages that wait for their frames, in total and for each visitor. A new page replaces the oldest. */
const maxWaiting = 16
const maxPerVisitor = 4
const waitMs = 60_000

interface WaitingPage {
  readonly html: Buffer
  /** The declared `csp` of the page. */
  readonly csp: unknown
  /** `Caller.key` of the visitor. */
  readonly owner: string
  readonly at: number
}

export const appsPath = '/apps/'

export class AppPages {
  readonly #view: Pick<ConsoleView, 'readPage'>
  readonly #now: () => number
  readonly #waiting = new Map<string, WaitingPage>()

  constructor(view: Pick<ConsoleView, 'readPage'>, now: () => number) {
    this.#view = view
    this.#now = now
  }

  /**
   * Reads the page of a tool as the visitor. Returns the path to load in a frame, relative to the console. Throws
   * BAD_REQUEST, NOT_FOUND or BACKEND_PROTOCOL, and the errors of the read.
   */
  async open({ visitor, body }: ApiRequest): Promise<{ path: string }> {
    const name = isFields(body) ? body['name'] : undefined
    if (typeof name !== 'string' || name === '')
      throw new GatehouseError('BAD_REQUEST', { detail: 'name must be the name of a tool' })
    const read = await this.#view.readPage(visitor.caller, name)
    if (!read) throw new GatehouseError('NOT_FOUND', { detail: 'the tool has no page' })
    if (read.kind === 'error') throw invalid(redactText(messageIn(read.json)).slice(0, 300))
    const page = pageIn(read.json)
    const token = randomBytes(32).toString('base64url')
    const owner = visitor.caller.key
    this.#makeRoom(owner)
    this.#waiting.set(token, { ...page, owner, at: this.#now() })
    return { path: `apps/${token}` }
  }

  /** Removes expired pages. A visitor's page replaces the visitor's own pages before the pages of other visitors. */
  #makeRoom(owner: string): void {
    for (const [token, { at }] of this.#waiting) if (this.#now() - at > waitMs) this.#waiting.delete(token)
    const all = [...this.#waiting]
    const own = all.filter(([, page]) => page.owner === owner)
    const [oldest] = own.length >= maxPerVisitor ? own : all
    if (oldest && (own.length >= maxPerVisitor || all.length >= maxWaiting)) this.#waiting.delete(oldest[0])
  }

  /** Sends a page once. Throws NOT_FOUND, including for a request that does not come from a frame. */
  send({ req, res }: Exchange, token: string): void {
    const dest = req.headers['sec-fetch-dest']
    const page = this.#waiting.get(token)
    this.#waiting.delete(token)
    const isForFrame = req.method === 'GET' && (dest === undefined || dest === 'iframe')
    if (!page || !isForFrame || this.#now() - page.at > waitMs) throw new GatehouseError('NOT_FOUND')
    res.removeHeader('X-Frame-Options')
    res.setHeader('Content-Security-Policy', appPolicy(page.csp, req.headers.host ?? ''))
    sendBody(res, 200, 'text/html; charset=utf-8', page.html)
  }
}

function messageIn(error: Buffer): string {
  return new JsonObject(error).text('message') ?? 'the page cannot be read'
}

/** Returns the page in the result of a read. Throws BACKEND_PROTOCOL. */
function pageIn(result: Buffer): Pick<WaitingPage, 'html' | 'csp'> {
  if (result.length > maxPageBytes) throw invalid(`the page is larger than ${maxPageBytes} bytes`)
  try {
    const contents = new JsonObject(result).raw('contents')
    const items = contents ? scanElements(contents).map((json) => new JsonObject(json)) : []
    const content = items.find((item) => item.text('mimeType') === pageType)
    const [text, blob] = [content?.text('text'), content?.text('blob')]
    if (!content || (text === undefined && blob === undefined))
      throw invalid(`the backend returned no content of type ${pageType}`)
    const csp: unknown = content.object('_meta')?.object('ui')?.value('csp')
    return { html: text === undefined ? Buffer.from(blob ?? '', 'base64') : Buffer.from(text), csp }
  } catch (cause) {
    throw cause instanceof JsonError ? new GatehouseError('BACKEND_PROTOCOL', { cause }) : cause
  }
}

function invalid(detail: string): GatehouseError {
  return new GatehouseError('BACKEND_PROTOCOL', { detail })
}
