/** Oddities of backends, grouped by family: the members of one family change different lists in the same way. */
import { listeningOddities, notificationOddities, pingOddities, sessionIdOddities } from './exchanges.ts'
import { type BackendOddity, listKinds } from './server.ts'
import {
  absentList,
  capabilityOddities,
  cursorOddities,
  fatalShapes,
  harmlessShapes,
  junkOddities,
  ofAll,
  ofCalls,
  ofList,
  ofOpening,
  silentShapes,
} from './shapes.ts'

type Family = readonly [BackendOddity, ...BackendOddity[]]

/** Oddities whose names differ only in the list. */
function byList(oddities: readonly BackendOddity[]): readonly Family[] {
  const grouped = Map.groupBy(oddities, ({ name }) => name.slice(name.indexOf(':')))
  return [...grouped.values()].flatMap(([first, ...rest]) => (first ? [[first, ...rest] as const] : []))
}

const alone = (oddities: readonly BackendOddity[]): readonly Family[] => oddities.map((oddity) => [oddity])

export const oddityFamilies: readonly Family[] = [
  ...byList(fatalShapes.flatMap((shape) => listKinds.map((kind) => ofList(kind, shape, 'loses')))),
  ...byList(harmlessShapes.flatMap((shape) => listKinds.map((kind) => ofList(kind, shape, 'keeps')))),
  ...byList(listKinds.map(absentList)),
  ...byList(junkOddities),
  ...byList(cursorOddities),
  ...alone(harmlessShapes.map(ofAll)),
  ...alone(fatalShapes.map(ofCalls)),
  ...alone(fatalShapes.map((shape) => ofOpening(shape, 'loses'))),
  ...alone(harmlessShapes.map((shape) => ofOpening(shape, 'keeps'))),
  ...alone(capabilityOddities),
  ...alone(notificationOddities),
  ...alone(listeningOddities),
  ...alone(pingOddities),
  ...alone(sessionIdOddities),
]

/** Oddities that last until the backend's timeout. */
export const silentOddities: readonly BackendOddity[] = silentShapes.flatMap((shape) =>
  listKinds.map((kind) => ofList(kind, shape, 'loses')),
)
