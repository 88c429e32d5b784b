/** Writes a backend's definitions to a manifest where every character is visible to a reviewer. */
import { quotedForKubectl } from '../../../schemas/yaml/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { Document, isScalar, Scalar, type ToStringOptions, visit } from 'yaml'
import { apiVersion, pinScheme, type ToolLockSpec } from '../../../schemas/index.ts'
import { readYaml } from '../../config/index.ts'
import { atOnce, canonicalText } from '../../mcp/index.ts'
import { visibleText } from '../../observe/index.ts'
import type { SurveyedBackend } from '../../vmcp/index.ts'
import type { LockTarget } from './targets.ts'

type Item = NonNullable<ToolLockSpec['tools']>[number]
type Listing = NonNullable<SurveyedBackend['listing']>

/** A list item: its name and its JSON. */
interface ListedItem {
  readonly key: string
  readonly text: string
}

/** The parts of a listing that a lock contains. Can be sent to another thread. */
export interface LockableItems {
  readonly instructions: string | undefined
  readonly tools: readonly ListedItem[]
  readonly prompts: readonly ListedItem[]
  readonly templates: readonly ListedItem[]
  /** Undefined if the skills have not been read. A previous lock then keeps its skills. */
  readonly skills?: readonly ListedItem[] | undefined
}

export function offeredIn({ server, tools, prompts, templates, skills }: Listing): LockableItems {
  const listItems = (items: readonly { readonly key: string; readonly json: Buffer }[]): ListedItem[] =>
    items.map(({ key, json }) => ({ key, text: json.toString() }))
  return {
    instructions: server.instructions,
    tools: listItems(tools),
    prompts: listItems(prompts),
    templates: listItems(templates),
    ...(skills && { skills: listItems(skills) }),
  }
}

/**
 * Returns the spec of a lock. `pages` replaces the previous pages, unless undefined. Keeps the previous lock's settings,
 * notes and variants where they still apply.
 */
export function lockSpec(
  target: LockTarget,
  offered: LockableItems,
  before: ToolLockSpec | undefined,
  pages?: ToolLockSpec['pages'],
): ToolLockSpec {
  const {
    backendRef: _,
    server,
    tools,
    prompts,
    resourceTemplates,
    pages: pagesBefore,
    skills,
    ...settings
  } = before ?? {
    scheme: pinScheme,
  }
  const { instructions } = offered
  const lockedPages = pages ?? pagesBefore
  const lockedServer = { ...server, ...(instructions === undefined ? {} : { instructions }) }
  if (instructions === undefined) delete lockedServer.instructions
  return {
    backendRef: { kind: target.kind, name: target.name },
    ...settings,
    ...(Object.keys(lockedServer).length > 0 ? { server: lockedServer } : {}),
    ...list('tools', offered.tools, tools),
    ...list('prompts', offered.prompts, prompts),
    ...list('resourceTemplates', offered.templates, resourceTemplates),
    ...(lockedPages && { pages: lockedPages }),
    // Without a list, the lock would not compare skills that the backend adds later.
    ...(offered.skills ? { skills: lockedItems(offered.skills, skills) } : skills && { skills }),
  }
}

function list(
  name: string,
  items: readonly ListedItem[],
  before: readonly Item[] = [],
): Partial<ToolLockSpec> {
  return items.length === 0 ? {} : { [name]: lockedItems(items, before) }
}

function lockedItems(items: readonly ListedItem[], before: readonly Item[] = []): Item[] {
  const known = new Map(before.map((item) => [item.name, item]))
  const sorted = items.toSorted((a, b) => (a.key < b.key ? -1 : 1))
  return sorted.map((item) => lockedItem(item, known.get(item.key)))
}

/**
 * Returns the previous item unchanged when the definition is one of its variants; otherwise returns a new item with the
 * previous note.
 */
export function lockedItem({ key, text }: ListedItem, before: Item | undefined): Item {
  const forms = before ? [before, ...(before.variants ?? [])] : []
  const isKnown = forms.some((form) => canonical(textOf(form)) === canonical(text))
  if (before && isKnown) return before
  const form = plainForm(text)
  return { name: key, ...form, ...(before?.note === undefined ? {} : { note: before.note }) }
}

function textOf({ definition, definitionText }: Pick<Item, 'definition' | 'definitionText'>): string {
  return definitionText ?? JSON.stringify(definition ?? {})
}

/** Returns the definition as an object if YAML and JSON parsers preserve it; otherwise returns it as text. */
export function plainForm(json: string): Pick<Item, 'definition' | 'definitionText'> {
  const value: object = JSON.parse(json)
  const survives = canonical(JSON.stringify(value)) === canonical(json) && json.isWellFormed()
  const hasLoneSurrogate = /\\ud[89a-f]/i.test(JSON.stringify(value))
  return survives && !hasLoneSurrogate
    ? { definition: value as Readonly<Record<string, unknown>> }
    : { definitionText: json }
}

function canonical(json: string): string {
  return atOnce(canonicalText(Buffer.from(json)))
}

export function manifestText(target: LockTarget, spec: ToolLockSpec): string {
  return yamlText(
    new Document(
      { apiVersion, kind: 'MCPToolLock', metadata: { name: target.name }, spec },
      quotedForKubectl,
    ),
  )
}

/** Writes a document as YAML and escapes characters that an editor would not show. */
export function yamlText(document: Document): string {
  visit(document, {
    Scalar(_key, node) {
      if (
        isScalar(node) &&
        typeof node.value === 'string' &&
        visibleText(node.value.replaceAll('\n', '')) !== node.value.replaceAll('\n', '')
      )
        node.type = Scalar.QUOTE_DOUBLE
    },
  })
  const text = textOfDocument(document, {})
  // The library drops leading spaces from continuation lines in quoted scalars.
  const isWhole = isDeepStrictEqual(readYaml(text).documents[0]?.value, document.toJS())
  return isWhole ? text : textOfDocument(document, { doubleQuotedMinMultiLineLength: Infinity })
}

function textOfDocument(document: Document, more: ToStringOptions): string {
  return escapeHidden(document.toString({ lineWidth: 0, ...more }))
}

/** Hidden characters occur only in double-quoted scalars, where YAML supports escapes. */
function escapeHidden(yaml: string): string {
  return yaml
    .split('\n')
    .map((line) =>
      visibleText(line).replace(/\\u\{([0-9a-f]+)\}/g, (_all, hex: string) => `\\U${hex.padStart(8, '0')}`),
    )
    .join('\n')
}
