// An agent of the Vercel AI SDK behind `pagefold serve`: all it needs is the proxy's address.
//
//   npm install ai @ai-sdk/anthropic @ai-sdk/openai zod
//   pagefold serve --policy economic &
//   PAGEFOLD_URL=http://127.0.0.1:8377 node agent.mjs anthropic claude-opus-5-5 "Read all parts and say when it is done."

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [provider, model, task, streamed] = process.argv.slice(2);
const baseURL = `${process.env.PAGEFOLD_URL ?? "http://127.0.0.1:8377"}/v1`;
const models = {
  anthropic: createAnthropic({ baseURL, apiKey: process.env.ANTHROPIC_API_KEY ?? "none" }),
  openai: createOpenAI({ baseURL, apiKey: process.env.OPENAI_API_KEY ?? "none" }),
};

const readPart = tool({
  description: "Reads a part.",
  inputSchema: z.object({ number: z.number().int() }),
  execute: async ({ number }) =>
    Array.from(
      { length: 39 },
      (_, line) => `${line + 1}\tdef part_${number}_${line}(page):  # recorded by reader_${(line * 7919) % 1000}`,
    ).join("\n"),
});

const asked = {
  model: models[provider](model),
  prompt: task,
  tools: { read_part: readPart },
  stopWhen: stepCountIs(60),
  maxRetries: 0,
};
if (streamed) {
  const answer = streamText(asked);
  for await (const text of answer.textStream) process.stdout.write(text);
  process.stdout.write("\n");
} else {
  console.log((await generateText(asked)).text);
}
