/**
 * The shape of the requirement tables: one row per promise of the three spec documents (1: the proxy command,
 * 2: external authentication and the authorization server, 3: the virtual server).
 *
 * A row says in a few words what must hold; the documents keep the full text. Tests cite the id (test/helpers/proves.ts).
 */
export interface Requirement {
  readonly id: string
  readonly doc: 1 | 2 | 3
  /** Section of the document the row comes from. */
  readonly section: string
  readonly says: string
}

/** Rows of one table or list; keys are ids without the document number, written as the field's dot path. */
export function rows(
  doc: Requirement['doc'],
  section: string,
  says: Readonly<Record<string, string>>,
): readonly Requirement[] {
  return Object.entries(says).map(([key, text]) => ({ id: `${doc}.${key}`, doc, section, says: text }))
}
