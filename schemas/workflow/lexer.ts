/**
 * Splits a Go text/template into text and actions, and actions into words. Syntax only: nothing is evaluated here.
 *
 * Source: Go text/template, "Actions" and lexical rules of its parser.
 */
export type Word =
  | { readonly kind: 'field'; readonly names: readonly string[] }
  | { readonly kind: 'variable'; readonly name: string; readonly names: readonly string[] }
  | { readonly kind: 'identifier' | 'literal' | 'mark'; readonly text: string }
  /** Fields that follow a closing parenthesis at once. */
  | { readonly kind: 'chain'; readonly names: readonly string[] }

/** The actions of a template, comments left out; a string says what is wrong. */
export function actionsOf(template: string): readonly (readonly Word[])[] | string {
  const actions: (readonly Word[])[] = []
  for (let at = template.indexOf('{{'); at >= 0; at = template.indexOf('{{', at)) {
    const inner = template.startsWith('- ', at + 2) ? at + 4 : at + 2
    if (template.startsWith('/*', inner)) {
      const end = template.indexOf('*/', inner)
      const close = end < 0 ? -1 : closing(template, end + 2)
      if (close < 0) return 'a comment is not closed'
      at = close
      continue
    }
    const action = wordsOf(template, inner)
    if (typeof action === 'string') return action
    actions.push(action.words)
    at = action.end
  }
  return actions
}

/** The end of `}}` or ` -}}` at this place; -1 when there is neither. */
function closing(template: string, at: number): number {
  const match = /^(\s+-)?\s*\}\}/.exec(template.slice(at, at + 64))
  return match ? at + match[0].length : -1
}

const spaces = /\s+/y
const fieldForm = /\.[A-Za-z_][A-Za-z0-9_]*/y
const variableForm = /\$[A-Za-z0-9_]*/y
const identifierForm = /[A-Za-z_][A-Za-z0-9_]*/y
const numberForm = /[+-]?(0[xX][0-9a-fA-F_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][+-]?[0-9]+)?)/y
const stringForm = /"(?:[^"\\\n]|\\.)*"|`[^`]*`|'(?:[^'\\\n]|\\.)+'/y
const markForm = /:=|[()|,=.]/y

function wordsOf(template: string, start: number): { words: readonly Word[]; end: number } | string {
  const words: Word[] = []
  let at = start
  let glued = false
  const take = (form: RegExp): string | undefined => {
    form.lastIndex = at
    const text = form.exec(template)?.[0]
    if (text !== undefined) at += text.length
    return text
  }
  const chain = (): string[] => {
    const names: string[] = []
    for (let name = take(fieldForm); name !== undefined; name = take(fieldForm)) names.push(name.slice(1))
    return names
  }
  while (at < template.length) {
    const close = closing(template, at)
    if (close >= 0) return { words, end: close }
    if (take(spaces) !== undefined) {
      glued = false
      continue
    }
    const names = chain()
    if (names.length > 0) {
      words.push({ kind: glued ? 'chain' : 'field', names })
      glued = false
      continue
    }
    const variable = take(variableForm)
    if (variable !== undefined) words.push({ kind: 'variable', name: variable, names: chain() })
    else {
      const plain = plainWord(take)
      if (!plain) return `the character ${JSON.stringify(template.charAt(at))} is not expected in an action`
      words.push(plain)
    }
    glued = template.charAt(at - 1) === ')'
  }
  return 'an action is not closed'
}

function plainWord(take: (form: RegExp) => string | undefined): Word | undefined {
  const literal = take(stringForm) ?? take(numberForm)
  if (literal !== undefined) return { kind: 'literal', text: literal }
  const identifier = take(identifierForm)
  if (identifier !== undefined) return { kind: 'identifier', text: identifier }
  const mark = take(markForm)
  return mark === undefined ? undefined : { kind: 'mark', text: mark }
}
