/** How field lists are written: path of an object -> its fields as `name[!] type`; `!` is required. */
export type Fields = { readonly [path: string]: readonly string[] }
export type Kinds = { readonly [kind: string]: Fields }

export function list(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

export const under = (prefix: string, fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields).map(([path, names]) => [path === '' ? prefix : `${prefix}.${path}`, names]),
  )
