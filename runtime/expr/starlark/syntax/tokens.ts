/** The scanner's token types. Source: Starlark specification, "Lexical elements". */
import type { SourcePosition } from '../errors.ts'

export const keywordTable: ReadonlySet<string> = new Set([
  'and',
  'break',
  'continue',
  'def',
  'elif',
  'else',
  'for',
  'if',
  'in',
  'lambda',
  'load',
  'not',
  'or',
  'pass',
  'return',
  'while',
])

/** Python keywords that Starlark reserves, some with a suggestion. */
export const reserved: Readonly<Record<string, string>> = {
  as: '',
  assert: 'call fail("...") in an if statement',
  async: 'call parallel([...]) to run functions concurrently',
  await: 'calls wait automatically',
  class: 'use dicts and functions',
  del: 'use d.pop(key) or a comprehension',
  except: 'errors end the script; check values before you use them',
  finally: 'errors end the script',
  from: 'scripts cannot import modules',
  global: 'top-level names can be read anywhere; keep values that change in a list or dict',
  import: 'scripts cannot import modules',
  is: 'use ==',
  nonlocal: 'keep values that change in a list or dict',
  raise: 'call fail("...")',
  try: 'errors end the script; check values before you use them',
  with: '',
  yield: 'return a list',
}

/** Operators from longest to shortest, so the first match is correct. */
export const punctuationMarks: readonly string[] = [
  '//=',
  '>>=',
  '<<=',
  '**',
  '//',
  '>>',
  '<<',
  '==',
  '!=',
  '<=',
  '>=',
  '+=',
  '-=',
  '*=',
  '/=',
  '%=',
  '&=',
  '|=',
  '^=',
  '+',
  '-',
  '*',
  '/',
  '%',
  '&',
  '|',
  '^',
  '~',
  '<',
  '>',
  '=',
  '.',
  ',',
  ';',
  ':',
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
]

/**
 * `kind` is the keyword or punctuation, or the name of a token class. `text` is the name of an identifier or the
 * content of a literal (bytes). `number` is the value of a numeric literal.
 */
export interface StarlarkToken extends SourcePosition {
  readonly kind: string
  readonly text: string
  readonly number?: number | bigint
}

/** Returns the description of a token for error messages. */
export function tokenName({ kind, text }: Pick<StarlarkToken, 'kind' | 'text'>): string {
  switch (kind) {
    case 'identifier':
      return `identifier ${JSON.stringify(text)}`
    case 'int':
    case 'float':
      return `${kind} literal`
    case 'string':
    case 'bytes':
      return `${kind} literal`
    case 'newline':
    case 'indent':
    case 'outdent':
    case 'end of file':
      return kind
    default:
      return keywordTable.has(kind) ? kind : `'${kind}'`
  }
}
