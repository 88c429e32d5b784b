import type { Events } from '../../observe/index.ts'
import { type ChainEntries, makeChain } from '../call/chain.ts'
import type { Core } from '../call/core.ts'
import { linksOf } from '../call/links.ts'
import { tellDecisions } from '../call/reports/decisions.ts'
import type { Observation } from './observation.ts'
import type { Reloadable } from './reloadable.ts'

export interface ChainOptions {
  /** Name of the virtual server. */
  readonly server: string
  readonly core: Core
  readonly reloadable: Reloadable
  readonly observation: Observation
  readonly events: Events
}

/** Returns the chain of a server. It follows the parts that a reload replaces. */
export function chainOf({ server, core, reloadable, observation, events }: ChainOptions): ChainEntries {
  const links = linksOf(
    {
      get guards() {
        return reloadable.guards
      },
      get features() {
        return reloadable.features
      },
      get callParts() {
        return core.parts
      },
      get maxToolNameLength() {
        return reloadable.config.aggregation.maxToolNameLength
      },
    },
    {
      core,
      observe: observation.observe,
      decided: tellDecisions({ ...observation, server, events, core: () => core }),
      isOwnTool: (tool) => reloadable.isOwnTool(tool),
      events,
    },
  )
  return makeChain(links)
}
