/** Entities as the engine gets them. Source: Cedar, entity JSON format. */
import type { CedarValue, Uid } from '../../../schemas/cedar/index.ts'

export type Attributes = Readonly<Record<string, CedarValue>>

export interface Entity {
  readonly uid: Uid
  readonly attrs: Attributes
  readonly parents: readonly Uid[]
  readonly tags?: Attributes
}
