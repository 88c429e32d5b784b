/** Formats figures of memory: resident memory and memory in use, after full collections. */
import type { Cell } from '../vmcp/table.ts'
import type { Memory } from './rig.ts'

export const memoryHead = [
  'Memory of the proxy',
  ...['RSS before MB', 'RSS with MB', 'RSS each KB', 'in use before MB', 'in use with MB', 'in use each KB'],
]

export function memoryRow(name: string, count: number, before: Memory, within: Memory): Cell[] {
  const columns = (from: number, to: number): number[] => [
    from / 1_048_576,
    to / 1_048_576,
    (to - from) / count / 1_024,
  ]
  return [
    name,
    ...columns(before.residentBytes, within.residentBytes),
    ...columns(before.liveBytes, within.liveBytes),
  ]
}
