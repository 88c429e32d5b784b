/** What a conversion says about one field. */

/**
 * renamed: same meaning under another name. differs: converted, and something is not the same. lost: left out, which
 * changes what the object does. refused: left out, a guard would vanish, so the object is not written.
 */
export type FieldEffect = 'renamed' | 'differs' | 'lost' | 'refused'

export interface MigrationRow {
  /** Path in the source, as in `spec.tokenExchange.client_id`. */
  readonly field: string
  readonly effect: FieldEffect
  /** Field names and rules; no values that could be secret. */
  readonly text: string
}

/**
 * converted: all of it. differs, partly: as the rows say. unchanged: of another API group. skipped: nothing that the
 * gateway has or needs. not converted: nothing is written.
 */
export type MigrationOutcome = 'converted' | 'differs' | 'partly' | 'unchanged' | 'skipped' | 'not converted'

/** The outcome of a document that has these rows. */
export function outcomeOf(rows: readonly MigrationRow[]): MigrationOutcome {
  const effects = new Set(rows.map(({ effect }) => effect))
  if (effects.has('refused')) return 'not converted'
  if (effects.has('lost')) return 'partly'
  return effects.has('differs') ? 'differs' : 'converted'
}
