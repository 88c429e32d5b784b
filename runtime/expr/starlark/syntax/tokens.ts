/** What the scanner makes of a script's text. Source: Starlark specification, "Lexical elements". */
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

/** Words of Python that Starlark keeps free, with what to do instead where that helps. */
export const reserved: Readonly<Record<string, string>> = {
  as: '',
  assert: 'call fail("...") in an if statement',
  async: 'call parallel([...]) to run functions side by side',
  await: 'calls wait by themselves',
  class: 'use dicts and functions',
  del: 'use d.pop(key) or a comprehension',
  except: 'errors end the script; check values before you use them',
  finally: 'errors end the script',
  from: 'there is nothing to import',
  global: 'names of the script itself can be read anywhere; keep what changes in a list or dict',
  import: 'there is nothing to import',
  is: 'use ==',
  nonlocal: 'keep what changes in a list or dict',
  raise: 'call fail("...")',
  try: 'errors end the script; check values before you use them',
  with: '',
  yield: 'return a list',
}

/** Longest first, so that the first match is the right one. */
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
 * `kind` is the keyword or punctuation itself, or the name of a class of tokens. `text` is the name of an identifier or
 * the content of a literal (bytes); `number` the value of a numeric one.
 */
export interface StarlarkToken extends SourcePosition {
  readonly kind: string
  readonly text: string
  readonly number?: number | bigint
}

/** As error messages name a token. */
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
