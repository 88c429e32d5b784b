/** The tables of the troubleshooting page. */
import { conditionReasons, podReasons, type ReasonRow } from './index.ts'

export function conditionTable(): string {
  return table(conditionReasons)
}

export function podTable(): string {
  return table(podReasons)
}

function table(rows: readonly ReasonRow[]): string {
  return ['| Reason | It means | What to do |', '|---|---|---|', ...rows.map(line)].join('\n')
}

function line({ reasons, means, step, isWarning = false }: ReasonRow): string {
  const todo = isWarning ? ['a warning', step].filter((part) => part !== '').join('; ') : step
  return `| ${reasons.join(', ')} | ${means} | ${todo} |`
}
