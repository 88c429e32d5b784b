/**
 * Creates the report for `import toolhive`: the outcome, differences and reasons for each file and document. Never
 * contains values.
 */
import type { painter } from '../../toolkit/terminal/output.ts'
import type { FieldEffect, MigrationOutcome } from './row.ts'
import type { MigratedDocument, Migration } from './convert.ts'

type Paint = ReturnType<typeof painter>

const outcomeColors: Readonly<Record<MigrationOutcome, 'green' | 'yellow' | 'red' | 'dim'>> = {
  converted: 'green',
  differs: 'yellow',
  partly: 'yellow',
  unchanged: 'dim',
  skipped: 'dim',
  'not converted': 'red',
}
const outcomeWidth = Math.max(...Object.keys(outcomeColors).map((outcome) => outcome.length))
const effectWidth = 'renamed'.length

export function reportLines({ documents }: Migration, paint: Paint): readonly string[] {
  const lines: string[] = []
  let file: string | undefined
  for (const document of documents) {
    if (document.file !== file) lines.push(paint('bold', document.file))
    file = document.file
    lines.push(...documentLines(document, paint))
  }
  lines.push('', summarize(documents))
  return lines
}

function documentLines({ subject, outcome, rows, made }: MigratedDocument, paint: Paint): readonly string[] {
  const added = made.filter((id) => id !== subject)
  const also = added.length > 0 ? `, ${made.includes(subject) ? 'with' : 'as'} ${added.join(', ')}` : ''
  const head = `  ${paint(outcomeColors[outcome], outcome.padEnd(outcomeWidth))}  ${subject}${also}`
  return [
    head,
    ...rows.map(({ line, effect, field, text }) => {
      const position = line > 0 ? `${line}: ` : ''
      return paint(
        'dim',
        `  ${' '.repeat(outcomeWidth)}  ${effect.padEnd(effectWidth)}  ${position}${field === '' ? '' : `${field}: `}${text}`,
      )
    }),
  ]
}

function summarize(documents: readonly MigratedDocument[]): string {
  const counts = new Map<MigrationOutcome, number>()
  for (const { outcome } of documents) counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
  return (Object.keys(outcomeColors) as MigrationOutcome[])
    .filter((outcome) => counts.has(outcome))
    .map((outcome) => `${counts.get(outcome)} ${outcome}`)
    .join(', ')
}

/** Returns the report for `-o json`. */
export function reportObject({ documents }: Migration, written: readonly string[]) {
  return {
    schema: 'gatehouse.dev/import-toolhive/v1',
    documents: documents.map(({ file, line, subject, outcome, rows, made }) => ({
      file,
      line,
      subject,
      outcome,
      made,
      rows: rows.map((row): { line: number; field: string; effect: FieldEffect; text: string } => ({
        line: row.line,
        field: row.field,
        effect: row.effect,
        text: row.text,
      })),
    })),
    written,
  }
}
