/**
 * The one order of everything that happens to an operation between the client codecs and the backend:
 *
 *     observe → list aliases → feature surfaces → call aliases → webhooks → authorize → reject → rate limit →
 *     readable quotas → tools of features → readable errors → resource links → guardrail → route → pinned arguments →
 *     quota → send
 *
 * - A caller without rights learns nothing and pays nothing: `authorize` comes before `reject`, which reports unknown and
 *   withheld names, and both come before the rate limit and the quota.
 * - A feature (tool search, scripts) has two places. Its surface comes before the checks, because it shows only what
 *   the caller may use. Its tools come after the checks, so that a call to one costs a token and can be denied.
 * - A workflow is a tool of the catalog. Its steps enter at `resource links`, because the earlier checks were made for
 *   the workflow itself.
 *
 * Links without configuration are not in the list.
 * Source: ARCHITECTURE.md, "A tool call"; docs/specification/virtual-server.md#endpoints.
 */
import type { Feature } from '../model/feature.ts'
import type { Link, Operation, Perform } from '../model/operation.ts'
import type { Outcome } from '../model/outcome.ts'

/** The links that the configuration requires. */
export interface ChainLinks {
  readonly observe?: Link | undefined
  readonly listAliases?: Link | undefined
  /** Outermost first. */
  readonly features: readonly Feature[]
  readonly callAliases?: Link | undefined
  readonly webhooks?: Link | undefined
  readonly authorize?: Link | undefined
  /** `featureTools` are the names of the tools that a later link runs. */
  readonly reject: (featureTools: ReadonlySet<string>) => Link
  readonly rateLimit?: Link | undefined
  readonly readableQuotas?: Link | undefined
  readonly readableErrors: Link
  readonly resourceLinks?: Link | undefined
  readonly guardrail?: Link | undefined
  readonly route: Link
  readonly pinnedArguments?: Link | undefined
  readonly quota: Link
  readonly send: Perform
}

/** Entry points of the chain. Each operation uses the links that are in force when it enters. */
export interface ChainEntries {
  /** For operations of clients. */
  readonly perform: Perform
  /** For operations that Gatehouse repeats on behalf of a client. Starts at `reject`. */
  readonly performOwn: Perform
  /** For steps of workflows, which have a target. Starts at `resource links`. */
  readonly performStep: Perform
}

/** `linksNow` returns the same object until the configuration changes. */
export function makeChain(linksNow: () => ChainLinks): ChainEntries {
  let chain: Chain | undefined
  function current(): Chain {
    const links = linksNow()
    if (chain?.links !== links) chain = new Chain(links, current)
    return chain
  }
  return {
    perform: async (operation) => current().perform(operation),
    performOwn: async (operation) => current().performOwn(operation),
    performStep: async (operation) => current().performStep(operation),
  }
}

/** The composed links of one configuration. */
class Chain {
  readonly links: ChainLinks
  readonly perform: Perform
  readonly performOwn: Perform
  readonly performStep: Perform
  readonly #current: () => Chain
  /** The part of the chain inside the surface of each feature. */
  readonly #inside = new Map<Feature, Perform>()

  constructor(links: ChainLinks, current: () => Chain) {
    this.links = links
    this.#current = current
    const step = [links.resourceLinks, links.guardrail, links.route, links.pinnedArguments, links.quota]
    const end = [links.readableErrors, ...step]
    const checked = (tools: FeatureTools) => [
      links.callAliases,
      links.webhooks,
      links.authorize,
      links.reject(new Set(tools.keys())),
      links.rateLimit,
      links.readableQuotas,
      runFeatureTools(tools),
      ...end,
    ]

    const surfaces: Link[] = []
    const tools = new Map<string, RunTool>()
    for (const feature of links.features.toReversed()) {
      this.#inside.set(feature, compose([...surfaces, ...checked(new Map(tools))], links.send))
      surfaces.unshift(feature.surface)
      for (const tool of feature.tools)
        tools.set(tool.name, (operation) => tool.run(operation, this.#insideNow(feature)))
    }
    this.perform = compose([links.observe, links.listAliases, ...surfaces, ...checked(tools)], links.send)
    this.performOwn = compose([links.reject(new Set()), ...end], links.send)
    this.performStep = compose(step, links.send)
  }

  /** Inner operations use the current configuration, unless it no longer contains the feature. */
  #insideNow(feature: Feature): Perform {
    return async (operation) => {
      const perform = this.#current().#inside.get(feature) ?? this.#inside.get(feature)
      return (perform ?? this.links.send)(operation)
    }
  }
}

type RunTool = (operation: Operation) => Promise<Outcome>
type FeatureTools = ReadonlyMap<string, RunTool>

function runFeatureTools(tools: FeatureTools): Link | undefined {
  if (tools.size === 0) return undefined
  return function runFeatureTool(operation, next) {
    const name = operation.method === 'tools/call' ? operation.params.text('name') : undefined
    const run = name === undefined ? undefined : tools.get(name)
    return run ? run(operation) : next(operation)
  }
}

function compose(links: readonly (Link | undefined)[], end: Perform): Perform {
  return links.reduceRight<Perform>((next, link) => (link ? (operation) => link(operation, next) : next), end)
}
