// Shared state: the page and the agent write the same document.
import { useEffect } from "react";
import { useAgent } from "@copilotkit/react-core/v2";
import type { Feature } from "../feature";

const id = "shared_state";

type Ingredient = { icon: string; name: string; amount: string };
type Recipe = {
  title: string;
  skill_level: string;
  cooking_time: string;
  special_preferences: string[];
  ingredients: Ingredient[];
  instructions: string[];
};

const first: Recipe = {
  title: "My soup",
  skill_level: "Beginner",
  cooking_time: "30 min",
  special_preferences: [],
  ingredients: [
    { icon: "🥕", name: "Carrots", amount: "3 large" },
    { icon: "🧅", name: "Onions", amount: "2" },
  ],
  instructions: ["Cut the carrots and the onions, and cook them in a liter of water."],
};

const wishes = ["High protein", "Low carb", "Spicy", "One pot", "Vegetarian"];

function Stage() {
  const { agent } = useAgent({ agentId: id });
  const recipe: Recipe = agent.state?.recipe ?? first;
  const change = (members: Partial<Recipe>) => agent.setState({ recipe: { ...recipe, ...members } });
  // What the agent sees is what the page sends with the next message.
  useEffect(() => {
    if (!agent.state?.recipe) agent.setState({ recipe: first });
  }, [agent, agent.state]);
  const at = <T,>(list: T[], n: number, value: T) => list.map((old, i) => (i === n ? value : old));
  const without = <T,>(list: T[], n: number) => list.filter((_, i) => i !== n);
  return (
    <form className="paper recipe" onSubmit={(e) => e.preventDefault()}>
      <fieldset disabled={agent.isRunning}>
        <input className="title" aria-label="Title" value={recipe.title} onChange={(e) => change({ title: e.target.value })} />
        <p className="row">
          <label>Time <select aria-label="Cooking time" value={recipe.cooking_time} onChange={(e) => change({ cooking_time: e.target.value })}>
            {["5 min", "15 min", "30 min", "45 min", "60+ min"].map((time) => <option key={time}>{time}</option>)}
          </select></label>
          <label>Skill <select aria-label="Skill" value={recipe.skill_level} onChange={(e) => change({ skill_level: e.target.value })}>
            {["Beginner", "Intermediate", "Advanced"].map((level) => <option key={level}>{level}</option>)}
          </select></label>
        </p>
        <p className="row wishes">
          {wishes.map((wish) => {
            const wished = recipe.special_preferences.includes(wish);
            const rest = recipe.special_preferences.filter((other) => other !== wish);
            return (
              <label key={wish} data-on={wished ? "" : undefined}>
                <input type="checkbox" checked={wished} onChange={() => change({ special_preferences: wished ? rest : [...rest, wish] })} />{wish}
              </label>
            );
          })}
        </p>
        <h3>Ingredients</h3>
        <ul className="ingredients">
          {recipe.ingredients.map((one, n) => (
            <li key={n}>
              <span>{one.icon}</span>
              <input aria-label={`Ingredient ${n + 1}`} value={one.name} onChange={(e) => change({ ingredients: at(recipe.ingredients, n, { ...one, name: e.target.value }) })} />
              <input aria-label={`Amount ${n + 1}`} value={one.amount} onChange={(e) => change({ ingredients: at(recipe.ingredients, n, { ...one, amount: e.target.value }) })} />
              <button type="button" aria-label={`Remove ${one.name}`} onClick={() => change({ ingredients: without(recipe.ingredients, n) })}>×</button>
            </li>
          ))}
        </ul>
        <button type="button" className="more" onClick={() => change({ ingredients: [...recipe.ingredients, { icon: "🍴", name: "", amount: "" }] })}>Add an ingredient</button>
        <h3>Instructions</h3>
        <ol className="instructions">
          {recipe.instructions.map((text, n) => (
            <li key={n}>
              <textarea aria-label={`Step ${n + 1}`} rows={2} value={text} onChange={(e) => change({ instructions: at(recipe.instructions, n, e.target.value) })} />
              <button type="button" aria-label={`Remove step ${n + 1}`} onClick={() => change({ instructions: without(recipe.instructions, n) })}>×</button>
            </li>
          ))}
        </ol>
        <button type="button" className="more" onClick={() => change({ instructions: [...recipe.instructions, ""] })}>Add a step</button>
      </fieldset>
    </form>
  );
}

export const recipe: Feature = {
  id,
  name: "Shared state",
  about: "You and the agent write one recipe: it sees what you have changed, and you see what it changes.",
  tries: [{ title: "Improve the recipe", message: "Improve the recipe" }],
  Stage,
};
