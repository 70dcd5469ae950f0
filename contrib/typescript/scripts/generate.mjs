// SPDX-License-Identifier: Apache-2.0
/**
 * Prints src/protocol.ts, which describes the protocol of `holt serve`:
 *
 *     npm run generate                          (runs $HOLT, or holt in the PATH)
 *     node scripts/generate.mjs DOCUMENT.json   (reads the output of `holt serve --openrpc`)
 *
 * Names of parameters and of members of results become camelCase; see src/names.ts. Policies keep their names. So do
 * free-form values, such as the environment of a command.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const WIDTH = 120;

const camel = (name) => name.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
const pascal = (name) => name.replace(/(^|[._])([a-z])/g, (_, __, letter) => letter.toUpperCase());
const quoted = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));

/** Writes a description as a doc comment. */
function comment(text, indent) {
  if (!text) return [];
  const sentence = text.replaceAll("*/", "*\\/");
  const short = `${indent}/** ${sentence} */`;
  if (short.length <= WIDTH) return [short];
  const lines = [`${indent}/**`];
  let line = `${indent} *`;
  for (const word of sentence.split(" ")) {
    if (line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = `${indent} *`;
    }
    line += ` ${word}`;
  }
  return [...lines, line, `${indent} */`];
}

const scalars = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

/** Whether a value of this schema has members with names of its user, which must not be changed. */
function isFree(schema) {
  return schema.type === "object" && !schema.properties;
}

class Generator {
  constructor(document) {
    this.document = document;
    this.policies = new Set(["Policy", "PolicyPart"]);
    this.free = new Set();
    this.structured = new Set();
  }

  /** The type of a schema. `keep` keeps the names of members, as in policies. */
  type(schema, indent, keep) {
    if (schema.$ref) return schema.$ref.split("/").at(-1);
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
    const several = schema.oneOf ?? schema.anyOf;
    if (several && !schema.type) return [...new Set(several.map((each) => this.type(each, indent, keep)))].join(" | ");
    if (Array.isArray(schema.type))
      return schema.type.map((type) => this.type({ ...schema, type }, indent, keep)).join(" | ");
    if (schema.type === "array") {
      const item = this.type(schema.items ?? {}, indent, keep);
      return /[|{ ]/.test(item) ? `Array<${item}>` : `${item}[]`;
    }
    if (schema.type === "object") {
      if (schema.properties) return ["{", ...this.members(schema, `${indent}  `, keep), `${indent}}`].join("\n");
      const values = schema.additionalProperties;
      return `Record<string, ${values && typeof values === "object" ? this.type(values, indent, keep) : "unknown"}>`;
    }
    if (!schema.type) return "unknown";
    if (!scalars[schema.type]) throw new Error(`unknown schema: ${JSON.stringify(schema)}`);
    return scalars[schema.type];
  }

  members(schema, indent, keep) {
    const lines = [];
    for (const [name, member] of Object.entries(schema.properties)) {
      if (!keep) this.note(name, member);
      const optional = schema.required?.includes(name) ? "" : "?";
      const shown = quoted(keep ? name : camel(name));
      lines.push(...comment(member.description, indent), `${indent}${shown}${optional}: ${this.type(member, indent, keep)};`);
    }
    return lines;
  }

  /** Notes whether the names below a member must stay. One name must not have both kinds of values. */
  note(name, schema) {
    const parts = [schema, ...(schema.oneOf ?? schema.anyOf ?? [])];
    const types = parts.flatMap((each) => each.type ?? []);
    const refs = parts.flatMap((each) => each.$ref ?? each.items?.$ref ?? []).map((ref) => ref.split("/").at(-1));
    const free = (types.includes("object") && !schema.properties) || (schema.items && isFree(schema.items)) ||
      refs.some((ref) => this.policies.has(ref)) || (!types.length && !refs.length && !schema.enum && schema.const === undefined);
    if (free) this.free.add(name);
    else if (refs.length || schema.properties) this.structured.add(name);
  }

  interface(name, schema) {
    const keep = this.policies.has(name);
    const about = comment(schema.description, "");
    if (schema.allOf) {
      const bases = schema.allOf.map((each) => this.type(each, "", keep));
      const required = (schema.required ?? []).map((each) => `"${each}"`).join(" | ");
      return [...about, `export type ${name} = ${bases.join(" & ")} & Required<Pick<${bases[0]}, ${required}>>;`, ""];
    }
    if (schema.type !== "object" || !schema.properties) return [...about, `export type ${name} = ${this.type(schema, "", keep)};`, ""];
    return [...about, `export interface ${name} {`, ...this.members(schema, "  ", keep), "}", ""];
  }

  params(name, method, omitted) {
    const params = method.params.filter((each) => each.name !== omitted);
    const lines = [...comment(`Parameters of ${method.name}.`, ""), `export interface ${name} {`];
    for (const each of params) {
      lines.push(...comment(each.description ?? each.schema.description, "  "));
      lines.push(`  ${quoted(camel(each.name))}${each.required ? "" : "?"}: ${this.type(each.schema, "  ", true)};`);
    }
    return [...lines, "}", ""];
  }

  table(title, name, methods, member) {
    const lines = [`/** ${title} */`, `export interface ${name} {`];
    for (const each of methods) lines.push(...comment(each.summary, "  "), `  "${each.name}": ${member(each)};`);
    return [...lines, "}", ""];
  }

  generate() {
    const { methods, components } = this.document;
    const notifications = this.document["x-notifications"];
    const requests = this.document["x-requests"];
    const result = (method) => this.type(method.result.schema, "", false);
    const body = [];
    for (const [name, schema] of Object.entries(components.schemas)) body.push(...this.interface(name, schema));
    for (const each of methods) body.push(...this.params(`${pascal(each.name)}Params`, each));
    for (const each of [...notifications, ...requests]) body.push(...this.params(`${pascal(each.name)}Params`, each));
    body.push(...this.table("The parameters and the result of each method.", "Methods", methods,
      (each) => `{ params: ${pascal(each.name)}Params; result: ${result(each)} }`));
    body.push(...this.table("The parameters of each notification.", "Notifications", notifications,
      (each) => `${pascal(each.name)}Params`));
    body.push(...this.table("The parameters and the result of each request of the server.", "Requests", requests,
      (each) => `{ params: ${pascal(each.name)}Params; result: ${result(each)} }`));
    const both = [...this.free].filter((name) => this.structured.has(name));
    const clashes = both.filter((name) => !this.harmless(name));
    if (clashes.length) throw new Error(`these members are free-form in one place and not in another: ${clashes}`);
    const list = (names) => names.map((name) => `  ${JSON.stringify(name)},`);
    body.push("/** Methods that do not start a session at rest. */", "export const AT_REST: ReadonlySet<string> = new Set([",
      ...list(methods.filter((each) => each["x-at-rest"]).map((each) => each.name)), "]);", "");
    body.push("/** Members of results whose values keep their names, because these come from the user or from a policy. */",
      "export const FREE: ReadonlySet<string> = new Set([", ...list([...this.free].sort()), "]);", "");
    body.push("/** Codes of errors by their names. */", "export const ERRORS = {",
      ...Object.entries(components.errors).map(([name, error]) => `  ${quoted(name)}: ${error.code},`), "} as const;", "");
    body.push("/** The version of the holt that has printed the document. */",
      `export const VERSION = ${JSON.stringify(this.document.info.version)};`);
    return [
      "// SPDX-License-Identifier: Apache-2.0",
      "// Generated by scripts/generate.mjs from `holt serve --openrpc`. Do not edit: run `npm run generate`.",
      "", ...body, "",
    ].join("\n");
  }

  /** Whether all structured values of a member have names that camelCase does not change. */
  harmless(name) {
    const schemas = this.document.components.schemas;
    return Object.values(schemas).every((schema) => {
      const ref = schema.properties?.[name]?.$ref?.split("/").at(-1);
      return !ref || Object.keys(schemas[ref].properties ?? {}).every((each) => camel(each) === each);
    });
  }
}

export function generate(document) {
  return new Generator(document).generate();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const file = process.argv[2];
  const text = file
    ? readFileSync(file, "utf8")
    : execFileSync(process.env.HOLT ?? "holt", ["serve", "--openrpc"], { encoding: "utf8", maxBuffer: 64 << 20 });
  process.stdout.write(generate(JSON.parse(text)));
}
