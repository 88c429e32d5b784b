/** Reads the pages that a backend offers, for commands that write or check locks. */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonError, JsonObject } from '../../../mcp/index.ts'
import { visibleText } from '../../../observe/index.ts'
import type { Backend } from '../../backends/backend.ts'
import type { Listing } from '../../catalog/listing.ts'
import { isUiAddress } from '../../catalog/names/ui-addresses.ts'
import { readToolUi } from '../../model/catalog/tool-ui.ts'
import type { OperationClient } from '../../model/session.ts'
import { htmlOf, maxPageBytes, pageDigest } from './page-locks.ts'

/** A page under the address that its backend uses. */
export interface SurveyedPage {
  readonly uri: string
  /** True if a tool or a resource of the backend names the page. */
  readonly isListed: boolean
  /** Undefined if the page could not be read. */
  readonly html: Buffer | undefined
  /** Reason why the page could not be read. */
  readonly problem: string | undefined
}

type PageRead = Pick<SurveyedPage, 'html' | 'problem'>

/** Limits of a lock. */
const maxPages = 1_000
const maxUri = 2_048
/** Maximum total size of the pages that are kept for one backend. */
const maxTotalBytes = 64 * 1024 * 1024

/** Reads the pages of a listing and the pages in `more`, sorted by address. Never rejects. */
export async function surveyPages(
  backend: Pick<Backend, 'call' | 'settings'>,
  client: OperationClient,
  listing: Listing,
  more: readonly string[],
): Promise<readonly SurveyedPage[]> {
  const pages: SurveyedPage[] = []
  const listed = new Set(pageAddresses(listing))
  let left = maxTotalBytes
  for (const uri of [...new Set([...listed, ...more])].sort()) {
    const problem = problemOf(uri, pages.length, left)
    const read = problem === undefined ? await readPage(backend, client, uri) : failed(problem)
    left -= read.html?.length ?? 0
    pages.push({ uri, isListed: listed.has(uri), ...read })
    if (pages.length > maxPages) break
  }
  return pages
}

/** Returns the addresses in the tools and resources of a listing. */
function pageAddresses({ tools, resources }: Listing): readonly string[] {
  const ofTools = tools.flatMap(({ json }) => readToolUi(new JsonObject(json))?.page ?? [])
  const listed = resources.map(({ key }) => key)
  return [...ofTools, ...listed].filter(isUiAddress)
}

function problemOf(uri: string, known: number, left: number): string | undefined {
  if (known >= maxPages) return `the backend offers more than ${maxPages} pages`
  if (uri.length > maxUri) return `the address is longer than ${maxUri} characters`
  return left > 0 ? undefined : `the pages of the backend are larger than ${maxTotalBytes} bytes`
}

async function readPage(
  backend: Pick<Backend, 'call' | 'settings'>,
  client: OperationClient,
  uri: string,
): Promise<PageRead> {
  const { timeoutMs } = backend.settings
  try {
    const outcome = await backend.call(client, {
      method: 'resources/read',
      params: new JsonObject(Buffer.from(JSON.stringify({ uri }))),
      sender: { caller: client.caller, headers: client.headers },
      capabilities: client.abilities.raw,
      signal: AbortSignal.timeout(timeoutMs),
      timeoutMs,
    })
    if (outcome.kind !== 'result') return failed('the backend returned an error')
    if (outcome.result.length > maxPageBytes) return failed(`it is larger than ${maxPageBytes} bytes`)
    const [html, ...others] = htmlOf(outcome.result)
    if (!html) return failed('the backend returned no content with a text or a blob')
    if (others.some((other) => !other || pageDigest(other) !== pageDigest(html)))
      return failed('the backend returned several contents')
    return { html, problem: undefined }
  } catch (error) {
    if (error instanceof GatehouseError || error instanceof JsonError) return failed(error.message)
    return failed('unknown error')
  }
}

function failed(problem: string): PageRead {
  return { html: undefined, problem: visibleText(problem) }
}
