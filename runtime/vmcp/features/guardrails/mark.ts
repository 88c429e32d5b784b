/**
 * `mark`: what becomes of characters that hide instructions, and delimiters around the texts of tools, which tell a model where
 * a text comes from. No defence alone: a model may follow what it reads all the same.
 */
import type { MarkRule } from '../../../../schemas/index.ts'
import { visibleText } from '../../../observe/index.ts'
import { delimiterName, searchedForged, searchedHidden } from './find/hidden.ts'
import type { PointerPattern } from './look/pointers.ts'
import { type ActiveRule, type CompiledRule, rulesFor, type Subject, scopedRule } from './rules.ts'

export interface CompiledMarks {
  readonly hidden: readonly CompiledRule[]
  readonly delimited: readonly CompiledRule[]
}

export function compileMarks(rules: readonly MarkRule[]): CompiledMarks {
  return {
    hidden: rules.flatMap((rule) => {
      const { hiddenCharacters: action } = rule
      if (action === undefined) return []
      return { ...scopedRule({ ...rule, action, direction: 'results' }), searched: [searchedHidden] }
    }),
    delimited: rules
      .filter(({ delimiters }) => delimiters)
      .map((rule) => ({
        ...scopedRule({ ...rule, action: 'escape', direction: 'results' }),
        searched: [searchedForged],
      })),
  }
}

/** The rule for the texts of a call: the first of those that fit. Only tools are marked by delimiters. */
export function delimitedBy(rules: readonly CompiledRule[], subject: Subject): readonly ActiveRule[] {
  return subject.method === 'tools/call' ? rulesFor(rules, 'results', subject).slice(0, 1) : []
}

/** What is put around texts at exactly these places, as it stands within a JSON string. */
export interface TextFrame {
  /** Where delimiters can be forged: all that a model may be shown as text. */
  readonly within: readonly PointerPattern[]
  readonly pointers: readonly PointerPattern[]
  readonly before: string
  readonly after: string
}

const framed: readonly PointerPattern[] = [
  ['content', undefined, 'text'],
  ['content', undefined, 'resource', 'text'],
]
/** Of a result, and of an error. */
const shownToModels: readonly PointerPattern[] = [['content'], ['message'], ['data']]
const maxName = 256

export function frameOf({ backend, original = '' }: Subject): TextFrame {
  const from = backend === '' ? '' : ` backend="${attribute(backend)}"`
  const opening = `<${delimiterName}${from} tool="${attribute(original)}">\n`
  return {
    within: shownToModels,
    pointers: framed,
    before: inJson(opening),
    after: inJson(`\n</${delimiterName}>`),
  }
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '"': '&quot;', '<': '&lt;', '>': '&gt;' }

/** A backend may call its tools anything. */
function attribute(name: string): string {
  return visibleText(name.slice(0, maxName)).replaceAll(/[&"<>]/g, (one) => entities[one] ?? '')
}

export function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}
