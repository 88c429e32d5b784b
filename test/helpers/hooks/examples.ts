/** Reads the examples of the schemas: specs of a kind by name, as the reference pages show them. */
import { join } from 'node:path'
import { loadBundle } from '../../../schemas/generate/load.ts'

const { kinds } = loadBundle(join(import.meta.dirname, '../../../schemas'))

type Specs<Spec> = Readonly<Record<string, Spec>>

export function examplesOf<Spec = unknown>(kind: string): Specs<Spec> {
  return (kinds.find((info) => info.kind === kind)?.examples ?? {}) as Specs<Spec>
}
