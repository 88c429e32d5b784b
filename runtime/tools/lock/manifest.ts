/** Locks as manifests: what a backend offers, written so that a reviewer sees every character. */
import { quotedForKubectl } from '../../../schemas/yaml/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { Document, isScalar, Scalar, type ToStringOptions, visit } from 'yaml'
import { apiVersion, pinScheme, type ToolLockSpec } from '../../../schemas/index.ts'
import { readYaml } from '../../config/index.ts'
import { atOnce, canonicalText } from '../../mcp/index.ts'
import { visibleText } from '../../observe/index.ts'
import type { Surveyed } from '../../vmcp/index.ts'
import type { LockTarget } from './targets.ts'

type Item = NonNullable<ToolLockSpec['tools']>[number]
type Listing = NonNullable<Surveyed['listing']>

/** An item of a list: its name, and its JSON. */
interface Listed {
  readonly key: string
  readonly text: string
}

/** What of a listing a lock holds. Can be handed to another thread. */
export interface LockableItems {
  readonly instructions: string | undefined
  readonly tools: readonly Listed[]
  readonly prompts: readonly Listed[]
  readonly templates: readonly Listed[]
}

export function offeredIn({ server, tools, prompts, templates }: Listing): LockableItems {
  const listed = (items: readonly { readonly key: string; readonly json: Buffer }[]): Listed[] =>
    items.map(({ key, json }) => ({ key, text: json.toString() }))
  return {
    instructions: server.instructions,
    tools: listed(tools),
    prompts: listed(prompts),
    templates: listed(templates),
  }
}

/** The specification of a lock. Settings, notes and variants of the lock before stay where they still fit. */
export function lockSpec(
  target: LockTarget,
  offered: LockableItems,
  before: ToolLockSpec | undefined,
): ToolLockSpec {
  const {
    backendRef: _,
    server,
    tools,
    prompts,
    resourceTemplates,
    ...settings
  } = before ?? {
    scheme: pinScheme,
  }
  const { instructions } = offered
  const told = { ...server, ...(instructions === undefined ? {} : { instructions }) }
  if (instructions === undefined) delete told.instructions
  return {
    backendRef: { kind: target.kind, name: target.name },
    ...settings,
    ...(Object.keys(told).length > 0 ? { server: told } : {}),
    ...list('tools', offered.tools, tools),
    ...list('prompts', offered.prompts, prompts),
    ...list('resourceTemplates', offered.templates, resourceTemplates),
  }
}

function list(name: string, items: readonly Listed[], before: readonly Item[] = []): Partial<ToolLockSpec> {
  if (items.length === 0) return {}
  const known = new Map(before.map((item) => [item.name, item]))
  const sorted = items.toSorted((a, b) => (a.key < b.key ? -1 : 1))
  return { [name]: sorted.map((item) => lockedItem(item, known.get(item.key))) }
}

/** A note stays; a form that is among those of the item before leaves all of it as it is. */
export function lockedItem({ key, text }: Listed, before: Item | undefined): Item {
  const forms = before ? [before, ...(before.variants ?? [])] : []
  const isKnown = forms.some((form) => canonical(textOf(form)) === canonical(text))
  if (before && isKnown) return before
  const form = plainForm(text)
  return { name: key, ...form, ...(before?.note === undefined ? {} : { note: before.note }) }
}

function textOf({ definition, definitionText }: Pick<Item, 'definition' | 'definitionText'>): string {
  return definitionText ?? JSON.stringify(definition ?? {})
}

/** As an object where readers of YAML and JSON lose nothing of it, else as text. */
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

/** A document as YAML; characters that an editor would not show are escapes. */
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
  // The library loses spaces at the beginning of a line of a quoted text that it writes over several lines.
  const isWhole = isDeepStrictEqual(readYaml(text).documents[0]?.value, document.toJS())
  return isWhole ? text : textOfDocument(document, { doubleQuotedMinMultiLineLength: Infinity })
}

function textOfDocument(document: Document, more: ToStringOptions): string {
  return escaped(document.toString({ lineWidth: 0, ...more }))
}

/** Hidden characters stand in double-quoted scalars only, where YAML has escapes for them. */
function escaped(yaml: string): string {
  return yaml
    .split('\n')
    .map((line) =>
      visibleText(line).replace(/\\u\{([0-9a-f]+)\}/g, (_all, hex: string) => `\\U${hex.padStart(8, '0')}`),
    )
    .join('\n')
}
