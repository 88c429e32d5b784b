/**
 * Implements `mark`: rules for characters that hide instructions, and delimiters around text from tools. The delimiters
 * show a model where the text comes from, but are not a complete defense, because a model may still follow instructions
 * in the text.
 */
import type { MarkRule } from '../../../../schemas/index.ts'
import { visibleText } from '../../../observe/index.ts'
import { delimiterName, searchedForged, searchedHidden } from './find/hidden.ts'
import {
  type ActiveRule,
  type CompiledRule,
  rulesFor,
  type Subject,
  scopedRule,
  type PointerPattern,
} from './rules.ts'

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

/** Returns the first rule that applies to the text in a call. Only tools have delimiters. */
export function delimitedBy(rules: readonly CompiledRule[], subject: Subject): readonly ActiveRule[] {
  return subject.method === 'tools/call' ? rulesFor(rules, 'results', subject).slice(0, 1) : []
}

/** Delimiters to place around the text at certain paths. The delimiters are escaped for a JSON string. */
export interface TextFrame {
  /** Paths where delimiters can be forged: all paths to text that a model may see. */
  readonly within: readonly PointerPattern[]
  readonly pointers: readonly PointerPattern[]
  readonly before: string
  readonly after: string
}

const framed: readonly PointerPattern[] = [
  ['content', undefined, 'text'],
  ['content', undefined, 'resource', 'text'],
]
/** Paths to text in results and in errors. */
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

/** Escapes a tool name, which may contain any characters. */
function attribute(name: string): string {
  return visibleText(name.slice(0, maxName)).replaceAll(/[&"<>]/g, (one) => entities[one] ?? '')
}

export function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}
