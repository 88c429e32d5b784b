/** The result of converting one field or document. */

/**
 * renamed: has the same meaning under another name. differs: converted, but behaves differently. lost: dropped, which
 * changes the object's behavior. refused: a protection would be lost, so the object is not written.
 */
export type FieldEffect = 'renamed' | 'differs' | 'lost' | 'refused'

export interface MigrationRow {
  /** Path in the source, such as `spec.tokenExchange.client_id`. */
  readonly field: string
  readonly effect: FieldEffect
  /** Contains field names and rules, but never values, which could be secret. */
  readonly text: string
}

/**
 * converted: converted completely. differs, partly: the rows contain the details. unchanged: belongs to another API
 * group. skipped: not needed by the gateway. not converted: not written.
 */
export type MigrationOutcome = 'converted' | 'differs' | 'partly' | 'unchanged' | 'skipped' | 'not converted'

/** Determines a document's outcome from its rows. */
export function outcomeOf(rows: readonly MigrationRow[]): MigrationOutcome {
  const effects = new Set(rows.map(({ effect }) => effect))
  if (effects.has('refused')) return 'not converted'
  if (effects.has('lost')) return 'partly'
  return effects.has('differs') ? 'differs' : 'converted'
}
