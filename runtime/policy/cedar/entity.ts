/** Entities as the engine gets them. Source: Cedar, entity JSON format. */
import type { CedarValue, Uid } from '../../../schemas/cedar/index.ts'

export type CedarAttributes = Readonly<Record<string, CedarValue>>

export interface Entity {
  readonly uid: Uid
  readonly attrs: CedarAttributes
  readonly parents: readonly Uid[]
  readonly tags?: CedarAttributes
}
