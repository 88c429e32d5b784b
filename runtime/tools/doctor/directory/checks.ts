/**
 * Checks a server against the published requirements of the directories in which vendors list MCP servers. The checks
 * do not cover what only a reviewer can decide, such as whether a description is accurate.
 * Sources: anthropics/claude-plugins-official, directory-checklist.md; support.claude.com, articles 11596036 and
 * 12922490; developers.openai.com, plugins.
 */
import { hiddenInText, isFields } from '../../../../schemas/index.ts'
import type { JsonRecord } from '../../../oauth/index.ts'
import { isFailure } from '../../../toolkit/mcp-client/exchange.ts'
import { quantity } from '../../../toolkit/terminal/plain-text.ts'
import type { FindingCode } from '../report/codes.ts'
import { type CheckOutcome, failed, ok, skipped, warning } from '../report/finding.ts'
import type { Check } from '../report/walk.ts'
import { joinList, type RemoteFacts, shownUrl } from '../remote/facts.ts'
import type { DirectoryName, ListedTool } from './model.ts'
import { fields, readListedPages, readPage, readTools } from './tools.ts'

type Row = Check<RemoteFacts>

const titles: Readonly<Record<DirectoryName, string>> = {
  claude: 'Claude directory',
  openai: 'OpenAI directory',
}

/** Maximum length of a tool name in Claude's directory. */
const maxNameLength = 64
/** Maximum number of app pages to read. */
const maxPages = 20
/** Maximum number of variants to read for each schema. */
const maxVariants = 100

interface ToolRule {
  readonly id: string
  readonly directory: DirectoryName
  readonly code: FindingCode
  /** `warning` for rules that a reviewer must confirm. */
  readonly severity: 'failed' | 'warning'
  readonly breaks: (tool: ListedTool) => boolean
}

const isFlag = (value: unknown): boolean => typeof value === 'boolean'

const toolRules: readonly ToolRule[] = [
  {
    id: 'claude-titles',
    directory: 'claude',
    code: 'directory.title',
    severity: 'failed',
    breaks: ({ title = '' }) => title.trim() === '',
  },
  {
    id: 'claude-hints',
    directory: 'claude',
    code: 'directory.claude-hints',
    severity: 'failed',
    breaks: ({ annotations }) =>
      !isFlag(annotations['readOnlyHint']) && !isFlag(annotations['destructiveHint']),
  },
  {
    id: 'claude-names',
    directory: 'claude',
    code: 'directory.name',
    severity: 'failed',
    breaks: ({ name }) => name.length > maxNameLength,
  },
  {
    id: 'claude-methods',
    directory: 'claude',
    code: 'directory.methods',
    severity: 'warning',
    breaks: ({ inputSchema }) => selectsMethod(inputSchema),
  },
  {
    id: 'claude-descriptions',
    directory: 'claude',
    code: 'directory.instructions',
    severity: 'warning',
    breaks: ({ title = '', description = '' }) =>
      instructions.test(description) || `${title}\n${description}`.search(hiddenInText) !== -1,
  },
  {
    id: 'openai-hints',
    directory: 'openai',
    code: 'directory.openai-hints',
    severity: 'failed',
    breaks: ({ annotations }) =>
      !isFlag(annotations['destructiveHint']) || !isFlag(annotations['openWorldHint']),
  },
]

/** Phrases that instruct the model instead of describing the tool. */
const instructions =
  /\b(?:ignore (?:all|any|the|your|previous)\b|(?:do not|don't|never) (?:tell|mention|inform|show)\b|always (?:call|use|run|prefer) this\b|(?:before|instead of) (?:calling|using) (?:any|all|every)? ?other tools?\b|system prompt\b|you (?:must|have to|should always)\b)/i

/** True for a parameter that selects between reading and writing, such as an HTTP method. */
function selectsMethod(inputSchema: JsonRecord): boolean {
  const choices = new Map<string, Set<string>>()
  for (const variant of variantsOf(inputSchema, inputSchema)) {
    for (const [parameter, schema] of Object.entries(fields(variant['properties']))) {
      const words = choices.get(parameter) ?? new Set()
      for (const word of wordsOf(fields(schema), inputSchema)) words.add(word)
      choices.set(parameter, words)
    }
  }
  return [...choices.values()].some(
    (words) => readingWords.some((word) => words.has(word)) && writingWords.some((word) => words.has(word)),
  )
}

/** Returns the values that a schema allows, in lower case. */
function wordsOf(schema: JsonRecord, root: JsonRecord): readonly string[] {
  return [...variantsOf(schema, root)].flatMap((variant) => {
    const listed = variant['enum']
    const values: readonly unknown[] = [variant['const'], ...(Array.isArray(listed) ? listed : [])]
    return values.flatMap((value) => (typeof value === 'string' ? value.toLowerCase() : []))
  })
}

/** Returns the schema, and the first schemas that it combines or refers to. */
function variantsOf(schema: JsonRecord, root: JsonRecord): ReadonlySet<JsonRecord> {
  const variants = new Set([schema])
  // The loop also visits the schemas that it adds.
  for (const { $ref, oneOf, anyOf, allOf } of variants) {
    const [, key = '', name = ''] =
      /^#\/(\$defs|definitions)\/([^/]+)$/.exec(typeof $ref === 'string' ? $ref : '') ?? []
    const parts: readonly unknown[] = [oneOf, anyOf, allOf].flat()
    for (const part of [fields(root[key])[name], ...parts])
      if (isFields(part) && variants.size < maxVariants) variants.add(part)
  }
  return variants
}

const readingWords = ['get', 'read', 'list']
const writingWords = ['post', 'put', 'patch', 'delete', 'create', 'update', 'write', 'remove']

/** Returns the checks for the directories, in the order in which a reviewer would read the report. */
export function directoryChecks(directories: readonly DirectoryName[]): readonly Row[] {
  const object = ({ target }: RemoteFacts): string => shownUrl(target)
  return directories.flatMap((directory): readonly Row[] => {
    const hop = titles[directory]
    const list: Row = { id: `${directory}-list`, hop, needs: ['tools'], object, run: checkList }
    const tools = toolRules
      .filter((rule) => rule.directory === directory)
      .map(
        (rule): Row => ({
          id: rule.id,
          hop,
          needs: [list.id],
          object,
          run: (facts) => checkTools(facts, rule),
        }),
      )
    const rest: readonly (readonly [string, Row['run'], readonly string[]])[] =
      directory === 'claude'
        ? [
            ['claude-apps', checkApps, [list.id]],
            ['claude-login', checkClaudeLogin, ['challenge']],
          ]
        : [
            ['openai-login', checkOpenAiLogin, ['challenge']],
            ['openai-domain', checkOpenAiDomain, ['endpoint']],
          ]
    return [list, ...tools, ...rest.map(([id, run, needs]): Row => ({ id, hop, needs, object, run }))]
  })
}

async function checkList(facts: RemoteFacts): Promise<CheckOutcome> {
  facts.tools ??= await readTools(facts)
  const { tools, gap } = facts.tools
  // Without any tool, the checks of tools would report success.
  if (tools.length === 0) return failed('directory.list', gap ?? 'the server lists no tools')
  if (gap !== undefined) return warning('directory.list', gap)
  return ok(quantity(tools.length, 'tool'))
}

async function checkTools({ tools: list }: RemoteFacts, rule: ToolRule): Promise<CheckOutcome> {
  const { tools = [] } = list ?? {}
  const broken = tools.filter(rule.breaks).map(({ name }) => name)
  if (broken.length === 0) return ok(quantity(tools.length, 'tool'))
  const report = rule.severity === 'failed' ? failed : warning
  const observed = `${broken.length} of ${quantity(tools.length, 'tool')}: ${joinList(broken)}`
  return report(rule.code, observed, { items: broken })
}

/** Checks that every app page declares a content security policy, in its contents or in the list of resources. */
async function checkApps(facts: RemoteFacts): Promise<CheckOutcome> {
  const uris = new Set((facts.tools?.tools ?? []).flatMap(({ pageUri }) => pageUri ?? []))
  if (uris.size === 0) return skipped('no tool has an app')
  const listed = await readListedPages(facts)
  const broken: string[] = []
  const unread: string[] = []
  for (const uri of [...uris].slice(0, maxPages)) {
    const meta = await readPage(facts, uri)
    if (meta === undefined) unread.push(uri)
    else if (!declaresPolicy(meta) && !declaresPolicy(listed.get(uri))) broken.push(uri)
  }
  if (broken.length > 0) return failed('directory.app', joinList(broken), { items: broken })
  if (unread.length > 0)
    return warning('directory.app', `could not be read: ${joinList(unread)}`, {
      items: unread,
      fix: 'Check the MCP server’s log for these requests. The doctor reads at most 256 KiB of each response.',
    })
  if (uris.size > maxPages)
    return warning('directory.app', `only the first ${maxPages} of ${uris.size} pages were read`)
  return ok(quantity(uris.size, 'app page'))
}

const declaresPolicy = (meta: unknown): boolean => 'csp' in fields(fields(meta)['ui'])

async function checkClaudeLogin({ isOpen, server }: RemoteFacts): Promise<CheckOutcome> {
  if (isOpen === true) return ok('the server requires no login')
  if (server === undefined) return failed('directory.login', 'the authorization server could not be found')
  const registers =
    'registration_endpoint' in server || server['client_id_metadata_document_supported'] === true
  return registers
    ? ok('clients register themselves')
    : failed('directory.login', 'clients cannot register themselves')
}

async function checkOpenAiLogin({ isOpen, server }: RemoteFacts): Promise<CheckOutcome> {
  if (isOpen === true) return ok('the server requires no login')
  return server === undefined
    ? failed('directory.login', 'the authorization server could not be found')
    : ok('OAuth')
}

/** Checks the file with which OpenAI verifies the owner of the domain. */
async function checkOpenAiDomain({ target, peers }: RemoteFacts): Promise<CheckOutcome> {
  const url = new URL('/.well-known/openai-apps-challenge', target)
  const reply = await peers.ask(url, { method: 'GET', headers: { accept: 'text/plain' } })
  if (isFailure(reply)) return warning('directory.domain', 'no response')
  if (reply.status !== 200) return warning('directory.domain', `status ${reply.status}`)
  return ok('the challenge file exists')
}
