/**
 * Defines the order of the links that an operation passes between the client codecs and the backend:
 *
 *     observe → list aliases → app lists → app pages → app calls → list tasks → feature surfaces → call aliases →
 *     open task → webhooks → authorize → offer sign-in → resolve target → rate limit → readable quotas → own tasks →
 *     feature tools → readable errors → resource links → skill results → skills → page reads → app results →
 *     guardrail → route → pinned arguments → request state → quota → task relay → send
 *
 * - An unauthorized caller receives no information and consumes no rate limit or quota. `authorize` comes before
 *   `resolveTarget`, which reports unknown and withheld names. Both links come before the rate limit and the quota.
 * - A feature (tool search, scripts) occupies two positions in the chain. The feature's list is built outside the
 *   checks, because it contains only items that the caller may use. The feature's tools come after the checks, so a
 *   call to such a tool can be denied and costs a token.
 * - A workflow is a tool in the catalog. Workflow steps enter the chain at `resource links`, because the workflow
 *   itself has already passed the earlier checks.
 *
 * Links that are not configured, or that do not apply to the method, are skipped.
 * Source: ARCHITECTURE.md, "A tool call"; docs/reference/specification/virtual-server.md#endpoints.
 */
import type { Link, Operation, Perform, Feature } from '../model/operation.ts'
import type { Outcome } from '../model/outcome.ts'

/** The links that the configuration requires. A reload may replace any link. */
export interface ChainLinks {
  readonly observe?: Link | undefined
  readonly listAliases?: Link | undefined
  readonly appLists?: Link | undefined
  readonly appPages?: Link | undefined
  readonly appCalls?: Link | undefined
  readonly listTasks?: Link | undefined
  /** The features, outermost first. */
  readonly features: readonly Feature[]
  readonly callAliases?: Link | undefined
  readonly openTask?: Link | undefined
  readonly webhooks?: Link | undefined
  readonly authorize?: Link | undefined
  readonly offerSignIn?: Link | undefined
  /** `featureTools` contains the names of tools that a later link runs. */
  readonly resolveTarget: (featureTools: ReadonlySet<string>) => Link
  readonly rateLimit?: Link | undefined
  readonly readableQuotas?: Link | undefined
  readonly ownTasks?: Link | undefined
  readonly readableErrors: Link
  readonly resourceLinks?: Link | undefined
  readonly skillResults?: Link | undefined
  readonly skills?: Link | undefined
  readonly pageReads?: Link | undefined
  readonly appResults?: Link | undefined
  readonly guardrail?: Link | undefined
  readonly route: Link
  readonly pinnedArguments?: Link | undefined
  readonly requestState?: Link | undefined
  readonly quota?: Link | undefined
  readonly taskRelay?: Link | undefined
  readonly send: Perform
}

type LinkName = Exclude<keyof ChainLinks, 'features' | 'resolveTarget' | 'send'>

/** The methods to which a link applies. The chain skips the link for all other methods. */
const methods: Partial<Record<LinkName, readonly string[]>> = {
  listAliases: ['tools/list'],
  appLists: ['tools/list'],
  appPages: ['resources/read', 'resources/subscribe', 'resources/unsubscribe'],
  appCalls: ['tools/call'],
  listTasks: ['tools/list'],
  callAliases: ['tools/call'],
  skillResults: ['tools/call', 'prompts/get', 'tasks/get', 'tasks/result'],
  skills: ['skills/list', 'skills/get', 'resources/directory/read', 'resources/read'],
  pageReads: ['resources/read'],
  appResults: ['tools/call', 'prompts/get', 'tasks/get', 'tasks/result'],
}

/** Entry points to the chain. */
export interface ChainEntries {
  /** Entry point for client operations. */
  readonly perform: Perform
  /** Entry point for operations that Gatehouse repeats on behalf of a client. Starts at `resolveTarget`. */
  readonly performOwn: Perform
  /** Entry point for workflow steps, which already have a target. Starts at `resource links`. */
  readonly performStep: Perform
}

/** One server's entry points and the links behind them. */
export interface Chain extends ChainEntries {
  /**
   * Replaces the links after a configuration change. An operation in flight keeps the features that were active when it
   * entered the chain. All other links are looked up when the operation reaches them, because a reload closes the links
   * that it replaces.
   */
  replace(links: ChainLinks): void
}

export function makeChain(first: ChainLinks): Chain {
  const chain = { links: first }
  let entries = composeChain(chain)
  return {
    perform: async (operation) => entries.perform(operation),
    performOwn: async (operation) => entries.performOwn(operation),
    performStep: async (operation) => entries.performStep(operation),
    replace(links) {
      const { features } = chain.links
      chain.links = links
      if (links.features !== features) entries = composeChain(chain)
    },
  }
}

function composeChain(chain: { readonly links: ChainLinks }): ChainEntries {
  const { features, resolveTarget, send } = chain.links
  const stepLinks = [
    'resourceLinks',
    'skillResults',
    'skills',
    'pageReads',
    'appResults',
    'guardrail',
    'route',
    'pinnedArguments',
    'requestState',
    'quota',
    'taskRelay',
  ] as const
  const finalLinks = ['readableErrors', ...stepLinks] as const
  const checkedLinks = (tools: FeatureTools) => [
    'callAliases' as const,
    'openTask' as const,
    'webhooks' as const,
    'authorize' as const,
    'offerSignIn' as const,
    resolveTarget(new Set(tools.keys())),
    'rateLimit' as const,
    'readableQuotas' as const,
    'ownTasks' as const,
    ...(tools.size === 0 ? [] : [runFeatureTools(tools)]),
    ...finalLinks,
  ]
  /** A link given by name is looked up when an operation reaches that link. */
  function compose(links: readonly (LinkName | Link)[], last: Perform): Perform {
    return links.reduceRight<Perform>((next, step) => {
      const applicable = typeof step === 'string' ? methods[step] : undefined
      return function performFromHere(operation) {
        const link = typeof step === 'string' ? chain.links[step] : step
        const applies = link && (applicable === undefined || applicable.includes(operation.method))
        return applies ? link(operation, next) : next(operation)
      }
    }, last)
  }

  const surfaces: Link[] = []
  const tools = new Map<string, RunTool>()
  for (const feature of features.toReversed()) {
    const inside = compose([...surfaces, ...checkedLinks(new Map(tools))], send)
    surfaces.unshift(feature.surface)
    for (const tool of feature.tools) tools.set(tool.name, (operation) => tool.run(operation, inside))
  }
  return {
    perform: compose(
      [
        'observe',
        'listAliases',
        'appLists',
        'appPages',
        'appCalls',
        'listTasks',
        ...surfaces,
        ...checkedLinks(tools),
      ],
      send,
    ),
    performOwn: compose([resolveTarget(new Set()), ...finalLinks], send),
    performStep: compose(stepLinks, send),
  }
}

type RunTool = (operation: Operation) => Promise<Outcome>
type FeatureTools = ReadonlyMap<string, RunTool>

function runFeatureTools(tools: FeatureTools): Link {
  return function runFeatureTool(operation, next) {
    const name = operation.method === 'tools/call' ? operation.params.text('name') : undefined
    const run = name === undefined ? undefined : tools.get(name)
    return run ? run(operation) : next(operation)
  }
}
