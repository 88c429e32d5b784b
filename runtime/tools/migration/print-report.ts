/** What `import toolhive` says: per file and document what was converted, what differs and why. No values. */
import type { painter } from '../../toolkit/terminal/output.ts'
import type { FieldEffect, MigrationOutcome } from './row.ts'
import type { Migrated, Migration } from './convert.ts'

type Paint = ReturnType<typeof painter>

const marks: Readonly<Record<MigrationOutcome, 'green' | 'yellow' | 'red' | 'dim'>> = {
  converted: 'green',
  differs: 'yellow',
  partly: 'yellow',
  unchanged: 'dim',
  skipped: 'dim',
  'not converted': 'red',
}
const outcomeWidth = Math.max(...Object.keys(marks).map((mark) => mark.length))
const effectWidth = 'renamed'.length

export function reportLines({ documents }: Migration, paint: Paint): readonly string[] {
  const lines: string[] = []
  let file: string | undefined
  for (const document of documents) {
    if (document.file !== file) lines.push(paint('bold', document.file))
    file = document.file
    lines.push(...documentLines(document, paint))
  }
  lines.push('', summary(documents))
  return lines
}

function documentLines({ subject, outcome, rows, made }: Migrated, paint: Paint): readonly string[] {
  const others = made.filter((id) => id !== subject)
  const also = others.length > 0 ? `, ${made.includes(subject) ? 'with' : 'as'} ${others.join(', ')}` : ''
  const head = `  ${paint(marks[outcome], outcome.padEnd(outcomeWidth))}  ${subject}${also}`
  return [
    head,
    ...rows.map(({ line, effect, field, text }) => {
      const place = line > 0 ? `${line}: ` : ''
      return paint(
        'dim',
        `  ${' '.repeat(outcomeWidth)}  ${effect.padEnd(effectWidth)}  ${place}${field === '' ? '' : `${field}: `}${text}`,
      )
    }),
  ]
}

function summary(documents: readonly Migrated[]): string {
  const counts = new Map<MigrationOutcome, number>()
  for (const { outcome } of documents) counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
  return (Object.keys(marks) as MigrationOutcome[])
    .filter((outcome) => counts.has(outcome))
    .map((outcome) => `${counts.get(outcome)} ${outcome}`)
    .join(', ')
}

/** For `-o json`. */
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
