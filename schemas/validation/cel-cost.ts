/**
 * Estimates the cost of evaluating an expression from its syntax tree. CEL has no endless loops, but loops can be
 * nested.
 *
 * The estimate uses the actual length of a list literal, and a thousand items for any other list.
 */
const unknownLength = 1000

/**
 * Returns the estimated number of steps in one evaluation. `node` is a node of the syntax tree, or any part of a node.
 */
export function costOf(node: unknown): number {
  if (typeof node !== 'object' || node === null) return 0
  const { case: kind, value }: { case?: unknown; value?: unknown } = node
  if (kind === 'comprehensionExpr') return loopCost(value as Loop)
  const own = kind === 'callExpr' ? 1 + searchCost(value as Call) : 0
  return Object.values(node).reduce<number>((sum, part) => sum + costOf(part), own)
}

interface Loop {
  readonly iterRange: unknown
  readonly loopStep: unknown
  readonly loopCondition: unknown
  readonly result: unknown
}

function loopCost({ iterRange, loopStep, loopCondition, result }: Loop): number {
  const once = 1 + costOf(loopStep) + costOf(loopCondition)
  return costOf(iterRange) + lengthOf(iterRange) * once + costOf(result)
}

interface Call {
  readonly function: string
  readonly args: readonly unknown[]
}

/** `x in list` visits every item. */
function searchCost({ function: name, args }: Call): number {
  return name === '@in' ? lengthOf(args[1]) : 0
}

function lengthOf(list: unknown): number {
  const { exprKind }: { exprKind?: unknown } = list as object
  const { case: kind, value } = (exprKind ?? {}) as { case?: unknown; value?: { elements?: unknown } }
  return kind === 'listExpr' && Array.isArray(value?.elements) ? value.elements.length : unknownLength
}
