/**
 * The one table of reasons in conditions and of pods: what each means, and the next step. The troubleshooting page is
 * generated from it, and `gatehouse cluster why` reads it.
 */
import { ownReasons } from './own.ts'
import { podReasons } from './pods.ts'
import { referenceReasons } from './references.ts'
import type { ReasonRow } from './row.ts'
import { byText } from '../canonical.ts'

export type { ReasonRow } from './row.ts'
export { podReasons } from './pods.ts'

/** Those of conditions, by their first reason. */
export const conditionReasons: readonly ReasonRow[] = [...ownReasons, ...referenceReasons].toSorted((a, b) =>
  byText(a.reasons[0] ?? '', b.reasons[0] ?? ''),
)

const rows: ReadonlyMap<string, ReasonRow> = new Map(
  [...podReasons, ...conditionReasons].flatMap((row) => row.reasons.map((reason) => [reason, row])),
)

/** The line of a reason; undefined for one that is no problem, or not known. */
export function reasonRow(reason: string): ReasonRow | undefined {
  return rows.get(reason)
}

/** A text of the table for a terminal: what it links to is named by its path. */
export function plainReason(markdown: string): string {
  return markdown.replaceAll(/\[[^\]]*\]\(([^)]+)\)/g, 'docs/guides/$1').replaceAll('`', '')
}
