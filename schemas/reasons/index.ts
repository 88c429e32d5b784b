/**
 * The table of condition and pod reasons, with their meaning and the next step. The troubleshooting page is generated
 * from this table, and `gatehouse cluster why` reads it.
 */
import { ownReasons, type ReasonRow, podReasons } from './own.ts'
import { referenceReasons } from './references.ts'
import { byText } from '../canonical.ts'

export { type ReasonRow, podReasons } from './own.ts'

/** Rows for condition reasons, sorted by the first reason in each row. */
export const conditionReasons: readonly ReasonRow[] = [...ownReasons, ...referenceReasons].toSorted((a, b) =>
  byText(a.reasons[0] ?? '', b.reasons[0] ?? ''),
)

const rows: ReadonlyMap<string, ReasonRow> = new Map(
  [...podReasons, ...conditionReasons].flatMap((row) => row.reasons.map((reason) => [reason, row])),
)

/** Returns the row for a reason, or undefined if the reason is unknown or not a problem. */
export function reasonRow(reason: string): ReasonRow | undefined {
  return rows.get(reason)
}

/** Converts Markdown from the table to plain text for a terminal: a link becomes the path of its target. */
export function plainReason(markdown: string): string {
  return markdown.replaceAll(/\[[^\]]*\]\(([^)]+)\)/g, 'docs/guides/$1').replaceAll('`', '')
}
