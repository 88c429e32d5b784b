/** Finds the exported names of files, and their importers. Follows re-exports to the declaration of a name. */
import { dirname, join } from 'node:path'
import {
  isExportDeclaration,
  isIdentifier,
  isImportDeclaration,
  isNamedExports,
  isNamespaceImport,
  isStringLiteral,
  isVariableStatement,
  type Node,
  type SourceFile,
  type Statement,
  SyntaxKind,
} from 'typescript/unstable/ast'

export interface Export {
  readonly file: string
  readonly name: string
  readonly isType: boolean
  /** Origin of a re-exported name. */
  readonly from: { readonly file: string; readonly name: string } | undefined
}

interface Import {
  readonly by: string
  readonly file: string
  /** `*`: all names. */
  readonly name: string
}

export interface ModuleGraph {
  readonly exports: readonly Export[]
  /** Files that import the name, directly or through re-exports. */
  importers(entry: Export): ReadonlySet<string>
}

export function moduleGraph(files: ReadonlyMap<string, SourceFile>): ModuleGraph {
  const exports = new Map<string, Export>()
  const imports: Import[] = []
  /** Files that another file re-exports completely. */
  const all: { readonly by: string; readonly file: string }[] = []
  for (const [file, tree] of files) {
    for (const statement of tree.statements) {
      for (const entry of exportsOf(file, statement)) exports.set(`${file} ${entry.name}`, entry)
      if (isExportDeclaration(statement) && !statement.exportClause) {
        const from = pathOf(file, statement.moduleSpecifier)
        if (from !== undefined) all.push({ by: file, file: from })
      }
      imports.push(...importsOf(file, statement))
    }
    imports.push(...dynamicImports(file, tree))
  }
  const importers = new Map<Export, Set<string>>()
  const note = (file: string, name: string, by: string): void => {
    const entry = exports.get(`${file} ${name}`)
    if (!entry) {
      for (const link of all) if (link.by === file) note(link.file, name, by)
      return
    }
    const known = importers.get(entry) ?? new Set()
    importers.set(entry, known.add(by))
    if (entry.from) note(entry.from.file, entry.from.name, by)
  }
  for (const { by, file, name } of imports) {
    if (name !== '*') note(file, name, by)
    else for (const entry of exports.values()) if (entry.file === file) note(file, entry.name, by)
  }
  return {
    exports: [...exports.values()],
    importers: (entry) => importers.get(entry) ?? new Set(),
  }
}

function* exportsOf(file: string, statement: Statement): Generator<Export> {
  if (isExportDeclaration(statement)) {
    const from = pathOf(file, statement.moduleSpecifier)
    if (!statement.exportClause || !isNamedExports(statement.exportClause)) return
    for (const { name, propertyName, isTypeOnly } of statement.exportClause.elements)
      yield {
        file,
        name: name.text,
        isType: isTypeOnly || statement.isTypeOnly,
        from: from === undefined ? undefined : { file: from, name: (propertyName ?? name).text },
      }
    return
  }
  const { modifiers = [] } = statement as { readonly modifiers?: readonly Node[] }
  if (!modifiers.some(({ kind }) => kind === SyntaxKind.ExportKeyword)) return
  const isType =
    statement.kind === SyntaxKind.InterfaceDeclaration || statement.kind === SyntaxKind.TypeAliasDeclaration
  for (const name of declaredNames(statement)) yield { file, name, isType, from: undefined }
}

function declaredNames(statement: Statement): string[] {
  if (!isVariableStatement(statement)) {
    const { name } = statement as { readonly name?: Node }
    return name && isIdentifier(name) ? [name.text] : []
  }
  return statement.declarationList.declarations.flatMap(({ name }) =>
    isIdentifier(name)
      ? [name.text]
      : name.elements.flatMap((element) =>
          'name' in element && element.name && isIdentifier(element.name) ? [element.name.text] : [],
        ),
  )
}

function* importsOf(by: string, statement: Statement): Generator<Import> {
  if (!isImportDeclaration(statement)) return
  const file = pathOf(by, statement.moduleSpecifier)
  const bindings = statement.importClause?.namedBindings
  if (file === undefined || !bindings) return
  if (isNamespaceImport(bindings)) yield { by, file, name: '*' }
  else
    for (const { name, propertyName } of bindings.elements)
      yield { by, file, name: (propertyName ?? name).text }
}

/** Returns dynamic imports, and types such as `import('…').Name`. They count as imports of all names, to be safe. */
function dynamicImports(by: string, tree: SourceFile): Import[] {
  const found: Import[] = []
  for (const [, specifier = ''] of tree.text.matchAll(/\bimport\(\s*'(\.[^']+)'/g))
    found.push({ by, file: join(dirname(by), specifier), name: '*' })
  return found
}

function pathOf(file: string, specifier: Node | undefined): string | undefined {
  if (!specifier || !isStringLiteral(specifier) || !specifier.text.startsWith('.')) return undefined
  return join(dirname(file), specifier.text)
}
